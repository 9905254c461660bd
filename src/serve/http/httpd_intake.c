/* serve/http/httpd_intake.c - the body of a request that its handler reads while it arrives
 * (HTTPD_BODY_STREAM). See httpd.h. */
#include <string.h>
#include <strings.h>

#include "base/condvar.h"
#include "base/mem.h"
#include "base/str.h"
#include "serve/http/httpd_exchange.h"

/* What may wait for the handler; beyond it the client waits. */
enum { INTAKE = 256 << 10, QUERY_MAX = 32 << 10 };

static enum MHD_Result copy_header(void *arg, enum MHD_ValueKind kind, const char *name,
				   const char *value)
{
	struct strlist *copies = arg;

	(void)kind;
	return strlist_add(copies, name) == 0 && strlist_add(copies, value ? value : "") == 0
		       ? MHD_YES
		       : MHD_NO;
}

/* The library has split the query and made blanks of '+'; nothing else was decoded. */
static enum MHD_Result copy_argument(void *arg, enum MHD_ValueKind kind, const char *name,
				     const char *value)
{
	struct buf *b = arg;
	size_t from = b->len;

	(void)kind;
	if (buf_printf(b, "%c%s%s%s", from ? '&' : '?', name, value ? "=" : "",
		       value ? value : "") < 0)
		return MHD_NO;
	for (size_t i = from; i < b->len; i++)
		if (b->data[i] == ' ')
			b->data[i] = '+';
	return MHD_YES;
}

bool httpd_intake_copy(struct httpd_exchange *x, const char *path)
{
	cleanup_buf struct buf query = { 0 };
	int headers = MHD_get_connection_values(x->connection, MHD_HEADER_KIND, NULL, NULL);
	int args = MHD_get_connection_values(x->connection, MHD_GET_ARGUMENT_KIND, NULL, NULL);

	buf_init(&query, QUERY_MAX);
	if (MHD_get_connection_values(x->connection, MHD_HEADER_KIND, copy_header, &x->copies) !=
		    headers ||
	    MHD_get_connection_values(x->connection, MHD_GET_ARGUMENT_KIND, copy_argument,
				      &query) != args)
		return false;
	x->target = str_printf("%s%s", path, buf_text(&query));
	x->has_copies = x->target != NULL;
	return x->has_copies;
}

const char *httpd_intake_header(const struct httpd_exchange *x, const char *name)
{
	for (size_t i = 0; i + 1 < x->copies.count; i += 2)
		if (strcasecmp(x->copies.items[i], name) == 0)
			return x->copies.items[i + 1];
	return NULL;
}

const char *httpd_target(const struct httpd_exchange *x)
{
	return x->target;
}

void httpd_intake_feed(struct httpd_exchange *x, const char *bytes, size_t *len)
{
	pthread_mutex_lock(&x->lock);
	size_t room = INTAKE - x->intake.len, n = *len < room ? *len : room;
	if (x->is_answered || x->is_gone || x->is_too_long) {
		*len = 0; /* nobody reads it */
	} else if (x->body_bytes + n > x->match.route->body_max ||
		   buf_add(&x->intake, bytes, n) < 0) {
		x->is_too_long = true;
		*len = 0;
	} else {
		x->body_bytes += n;
		*len -= n;
	}
	if (*len > 0) {
		x->is_intake_full = x->is_suspended = true;
		MHD_suspend_connection(x->connection);
	}
	pthread_cond_broadcast(&x->drained);
	pthread_mutex_unlock(&x->lock);
}

bool httpd_intake_end(struct httpd_exchange *x)
{
	pthread_mutex_lock(&x->lock);
	x->is_body_over = true;
	bool is_answered = x->is_answered;
	if (!is_answered) {
		x->is_suspended = true;
		MHD_suspend_connection(x->connection);
	}
	pthread_cond_broadcast(&x->drained);
	pthread_mutex_unlock(&x->lock);
	return is_answered;
}

ssize_t httpd_body_read(struct httpd_exchange *x, void *bytes, size_t max)
{
	if (!x->is_streamed_in)
		return 0;
	pthread_mutex_lock(&x->lock);
	while (x->intake.len == 0 && !x->is_body_over && !x->is_gone && !x->is_too_long)
		pthread_cond_wait(&x->drained, &x->lock);
	size_t n = x->intake.len < max ? x->intake.len : max;
	ssize_t r = x->is_gone || x->is_too_long ? -1 : (ssize_t)n;
	if (r > 0) {
		memcpy(bytes, x->intake.data, n);
		buf_consume(&x->intake, n);
	}
	if (r > 0 && x->is_intake_full) {
		x->is_intake_full = false;
		httpd_exchange_wake(x);
	}
	pthread_mutex_unlock(&x->lock);
	return r;
}

bool httpd_body_is_too_long(struct httpd_exchange *x)
{
	pthread_mutex_lock(&x->lock);
	bool is = x->is_too_long;
	pthread_mutex_unlock(&x->lock);
	return is;
}
