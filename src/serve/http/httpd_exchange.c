/* serve/http/httpd_exchange.c - one request: what it says, and its answer. See httpd.h. */
#include "serve/http/httpd_exchange.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/condvar.h"
#include "base/mem.h"
#include "base/str.h"

/* How often a writer looks whether the server ends. */
enum { LOOK_MS = 200 };

static void on_hangup(void *arg);

struct httpd_exchange *httpd_exchange_new(struct httpd *h, struct MHD_Connection *c,
					  const char *method)
{
	struct httpd_exchange *x = mem_alloc(sizeof(*x));

	if (!x)
		return NULL;
	x->server = h;
	x->connection = c;
	x->method = str_dup(method);
	const union MHD_ConnectionInfo *i =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	x->hangup =
		(struct hangup_entry){ .fd = i ? i->connect_fd : -1, .fn = on_hangup, .arg = x };
	x->body_fd = -1;
	x->refs = 1;
	x->begun_ns = clock_now_ns();
	pthread_mutex_init(&x->lock, NULL);
	condvar_init(&x->drained);
	buf_init(&x->front, SIZE_MAX / 2);
	buf_init(&x->back, SIZE_MAX / 2);
	buf_init(&x->intake, SIZE_MAX / 2);
	return x;
}

struct httpd_exchange *httpd_ref(struct httpd_exchange *x)
{
	x->refs++;
	return x;
}

void httpd_put(struct httpd_exchange *x)
{
	if (--x->refs > 0)
		return;
	if (x->response)
		MHD_destroy_response(x->response);
	buf_done(&x->body);
	buf_done(&x->front);
	buf_done(&x->back);
	buf_done(&x->intake);
	close_fdp(&x->body_fd);
	for (size_t i = 0; i < HTTPD_EXCHANGE_HEADERS; i++)
		free(x->headers[i].value);
	strlist_done(&x->kept);
	strlist_done(&x->passed);
	strlist_done(&x->copies);
	free(x->target);
	route_match_done(&x->match);
	pthread_cond_destroy(&x->drained);
	pthread_mutex_destroy(&x->lock);
	free(x->method);
	free(x->path);
	free(x);
}

void httpd_exchange_log(struct httpd_exchange *x)
{
	const struct httpd_options *o = &x->server->options;

	if (x->is_logged)
		return;
	x->is_logged = true;
	pthread_mutex_lock(&x->lock);
	unsigned status = x->status;
	pthread_mutex_unlock(&x->lock);
	httpspan_end(x, status);
	if (o->log)
		o->log(x, status, clock_now_ns() - x->begun_ns, o->log_arg);
}

void httpd_exchange_leave(struct httpd_exchange *x)
{
	pthread_mutex_lock(&x->lock);
	x->is_suspended = false; /* there is nothing to resume any more */
	pthread_mutex_unlock(&x->lock);
	hangup_end(x->server->hangup, &x->hangup);
	if (x->is_admitted && x->server->options.leave)
		x->server->options.leave(x, x->server->options.admit_arg);
	pthread_mutex_lock(&x->lock);
	x->is_gone = x->has_left = true;
	struct MHD_Response *unsent = TAKE_PTR(x->response);
	pthread_cond_broadcast(&x->drained);
	pthread_mutex_unlock(&x->lock);
	if (unsent) /* a stream has a reference to x, which ends with it */
		MHD_destroy_response(unsent);
	upgrade_give_up(x);
	httpd_exchange_log(x);
	httpd_put(x);
}

/* ---- the request */

struct httpd *httpd_server(const struct httpd_exchange *x)
{
	return x->server;
}

const char *httpd_method(const struct httpd_exchange *x)
{
	return x->method;
}

const char *httpd_path(const struct httpd_exchange *x)
{
	return x->path ? x->path : "";
}

const struct httpd_route *httpd_route_of(const struct httpd_exchange *x)
{
	return x->match.route;
}

const char *httpd_param(const struct httpd_exchange *x, const char *name)
{
	return route_param(&x->match, name);
}

void httpd_set_principal(struct httpd_exchange *x, const char *name, void *tenant)
{
	(void)str_copy(x->principal, sizeof(x->principal), name);
	x->tenant = tenant;
}

const char *httpd_principal(const struct httpd_exchange *x)
{
	return x->principal;
}

void *httpd_tenant(const struct httpd_exchange *x)
{
	return x->tenant;
}

const struct trace_context *httpd_trace(const struct httpd_exchange *x)
{
	return &x->span.self;
}

const char *httpd_body(const struct httpd_exchange *x, size_t *ret_len)
{
	*ret_len = x->body.len;
	return buf_text(&x->body);
}

int httpd_body_fd(struct httpd_exchange *x, uint64_t *ret_bytes)
{
	*ret_bytes = x->body_bytes;
	if (x->body_fd >= 0)
		(void)lseek(x->body_fd, 0, SEEK_SET);
	return x->body_fd;
}

/* Keeps a value until the end of the request. */
static const char *keep(struct httpd_exchange *x, char *value)
{
	cleanup_free char *owned = value;

	if (!owned || strlist_add(&x->kept, owned) < 0)
		return NULL;
	return x->kept.items[x->kept.count - 1];
}

const char *httpd_header(struct httpd_exchange *x, const char *name)
{
	const char *v = x->has_copies
				? httpd_intake_header(x, name)
				: MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);

	if (!v)
		return NULL;
	v += strspn(v, " \t");
	size_t len = strlen(v);
	if (len == 0 || !strchr(" \t", v[len - 1]))
		return v;
	while (len > 0 && strchr(" \t", v[len - 1]))
		len--;
	return keep(x, str_ndup(v, len));
}

struct header_visit {
	bool (*fn)(const char *name, const char *value, void *arg);
	void *arg;
};

static enum MHD_Result visit_header(void *arg, enum MHD_ValueKind kind, const char *name,
				    const char *value)
{
	const struct header_visit *v = arg;

	(void)kind;
	return v->fn(name, value ? value : "", v->arg) ? MHD_YES : MHD_NO;
}

void httpd_visit_headers(struct httpd_exchange *x,
			 bool (*fn)(const char *name, const char *value, void *arg), void *arg)
{
	struct header_visit v = { fn, arg };

	if (x->has_copies) {
		for (size_t i = 0; i + 1 < x->copies.count; i += 2)
			if (!fn(x->copies.items[i], x->copies.items[i + 1], arg))
				return;
		return;
	}
	(void)MHD_get_connection_values(x->connection, MHD_HEADER_KIND, visit_header, &v);
}

const char *httpd_query(struct httpd_exchange *x, const char *name)
{
	const char *v = MHD_lookup_connection_value(x->connection, MHD_GET_ARGUMENT_KIND, name);

	return v ? keep(x, route_decode(v, strlen(v))) : NULL;
}

/* Resumes the connection, if it waits. Called with the lock held. */
void httpd_exchange_wake(struct httpd_exchange *x)
{
	if (!x->is_suspended || x->is_quick)
		return;
	x->is_suspended = false;
	MHD_resume_connection(x->connection);
}

void httpd_exchange_resume(struct httpd_exchange *x)
{
	pthread_mutex_lock(&x->lock);
	httpd_exchange_wake(x);
	pthread_mutex_unlock(&x->lock);
}

/* The library would not look at the connection while there is nothing to send. */
static void on_hangup(void *arg)
{
	struct httpd_exchange *x = arg;

	pthread_mutex_lock(&x->lock);
	x->is_gone = true;
	if (x->is_stream)
		httpd_exchange_wake(x);
	pthread_cond_broadcast(&x->drained);
	void (*left)(void *) = x->left;
	void *left_arg = x->left_arg;
	bool is_lost = x->is_streamed_in && !x->is_body_over;
	pthread_mutex_unlock(&x->lock);
	if (is_lost) /* the library would wait for the rest of the body */
		httpdoor_hurry(x->server->door, httpd_guest(x->connection));
	if (left)
		left(left_arg);
}

/* False: the connection is over already, which can be while the handler reads the body. */
static bool watch(struct httpd_exchange *x)
{
	return x->hangup.fd < 0 || x->is_quick || hangup_add(x->server->hangup, &x->hangup);
}

void httpd_watch(struct httpd_exchange *x, void (*fn)(void *arg), void *arg)
{
	pthread_mutex_lock(&x->lock);
	x->left = fn;
	x->left_arg = arg;
	pthread_mutex_unlock(&x->lock);
	if (!watch(x))
		fn(arg);
}

void httpd_unwatch(struct httpd_exchange *x)
{
	hangup_remove(x->server->hangup, &x->hangup);
	pthread_mutex_lock(&x->lock);
	x->left = NULL;
	pthread_mutex_unlock(&x->lock);
}

/* ---- the answer */

void httpd_add_header(struct httpd_exchange *x, const char *name, const char *value)
{
	for (size_t i = 0; i < HTTPD_EXCHANGE_HEADERS; i++)
		if (!x->headers[i].name) {
			x->headers[i].name = name;
			x->headers[i].value = str_dup(value);
			return;
		}
}

void httpd_pass_header(struct httpd_exchange *x, const char *name, const char *value)
{
	if (strlist_add(&x->passed, name) == 0 && strlist_add(&x->passed, value) < 0)
		(void)strlist_add(&x->passed, "");
}

static bool has_header(const struct httpd_exchange *x, const char *name)
{
	for (size_t i = 0; i < HTTPD_EXCHANGE_HEADERS && x->headers[i].name; i++)
		if (str_eq(x->headers[i].name, name))
			return true;
	for (size_t i = 0; i + 1 < x->passed.count; i += 2)
		if (strcasecmp(x->passed.items[i], name) == 0)
			return true;
	return false;
}

static void add_headers(const struct httpd_exchange *x, const char *type, struct MHD_Response *r)
{
	if (type)
		(void)MHD_add_response_header(r, "Content-Type", type);
	if (!has_header(x, "Cache-Control"))
		(void)MHD_add_response_header(r, "Cache-Control", "no-store");
	(void)MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	for (size_t i = 0; i < HTTPD_EXCHANGE_HEADERS && x->headers[i].name; i++)
		if (x->headers[i].value)
			(void)MHD_add_response_header(r, x->headers[i].name, x->headers[i].value);
	for (size_t i = 0; i + 1 < x->passed.count; i += 2)
		(void)MHD_add_response_header(r, x->passed.items[i], x->passed.items[i + 1]);
}

/* The thread of the connections sends it. */
void httpd_exchange_answer(struct httpd_exchange *x, unsigned status, const char *type,
			   struct MHD_Response *r)
{
	if (r)
		add_headers(x, type, r);
	pthread_mutex_lock(&x->lock);
	struct MHD_Response *other = x->has_left ? r : x->response;
	x->is_answered = true;
	x->response = x->has_left ? NULL : r;
	x->status = status;
	bool wakes = x->is_suspended && !x->is_quick;
	x->is_suspended = false;
	pthread_mutex_unlock(&x->lock);
	/* Without the lock: the library ends connections that have left HTTP with its own held.
	 * Until here it is suspended, so it is still there. */
	if (wakes)
		MHD_resume_connection(x->connection);
	if (other)
		MHD_destroy_response(other);
}

enum MHD_Result httpd_exchange_queue(struct httpd_exchange *x)
{
	pthread_mutex_lock(&x->lock);
	struct MHD_Response *r = TAKE_PTR(x->response);
	unsigned status = x->status;
	pthread_mutex_unlock(&x->lock);
	if (!r)
		return MHD_NO;
	enum MHD_Result queued = MHD_queue_response(x->connection, status, r);
	MHD_destroy_response(r);
	return queued;
}

void httpd_answer(struct httpd_exchange *x, unsigned status, const char *type, const void *body,
		  size_t len)
{
	httpd_exchange_answer(x, status, type,
			      MHD_create_response_from_buffer(len,
							      (void *)(uintptr_t)(len ? body : ""),
							      MHD_RESPMEM_MUST_COPY));
}

void httpd_answer_fd(struct httpd_exchange *x, unsigned status, const char *type, int fd,
		     uint64_t offset, uint64_t bytes)
{
	struct MHD_Response *r = MHD_create_response_from_fd_at_offset64(bytes, fd, offset);

	if (!r)
		close(fd);
	httpd_exchange_answer(x, status, type, r);
}

/* ---- streams */

/* Called by the library, in the thread of the connections. */
static ssize_t read_stream(void *arg, uint64_t pos, char *bytes, size_t max)
{
	struct httpd_exchange *x = arg;
	ssize_t n = 0;

	(void)pos;
	pthread_mutex_lock(&x->lock);
	if (x->front_at == x->front.len) {
		struct buf empty = x->front;
		x->front = x->back;
		x->back = empty;
		x->front_at = 0;
		buf_clear(&x->back);
		pthread_cond_broadcast(&x->drained);
	}
	size_t left = x->front.len - x->front_at;
	if (left > 0) {
		n = (ssize_t)(left < max ? left : max);
		memcpy(bytes, x->front.data + x->front_at, (size_t)n);
		x->front_at += (size_t)n;
	} else if (x->is_ended || x->is_gone) {
		n = x->is_whole && x->is_ended ? MHD_CONTENT_READER_END_OF_STREAM
					       : MHD_CONTENT_READER_END_WITH_ERROR;
	} else {
		x->is_suspended = true;
		MHD_suspend_connection(x->connection);
	}
	pthread_mutex_unlock(&x->lock);
	return n;
}

static void end_stream(void *arg)
{
	httpd_put(arg);
}

void httpd_stream_begin(struct httpd_exchange *x, unsigned status, const char *type)
{
	httpd_stream_begin_sized(x, status, type, HTTPD_UNKNOWN_BYTES);
}

void httpd_stream_begin_sized(struct httpd_exchange *x, unsigned status, const char *type,
			      uint64_t bytes)
{
	struct MHD_Response *r = MHD_create_response_from_callback(
		bytes, HTTPD_EXCHANGE_STREAM, read_stream, httpd_ref(x), end_stream);

	pthread_mutex_lock(&x->lock);
	x->is_stream = true;
	pthread_mutex_unlock(&x->lock);
	(void)watch(x);
	httpd_exchange_answer(x, status, type, r);
	if (!r)
		httpd_put(x);
}

/* Called with the lock held. */
static bool add(struct httpd_exchange *x, const void *bytes, size_t len)
{
	if (x->is_gone || x->is_ended || buf_add(&x->back, bytes, len) < 0)
		return false;
	httpd_exchange_wake(x);
	return true;
}

/* Called with the lock held. False: there is none, and nobody waits for it. */
static bool wait_room(struct httpd_exchange *x)
{
	while (!x->is_gone && !x->is_ended && x->back.len >= HTTPD_EXCHANGE_STREAM) {
		if (x->is_hurried || x->server->is_hurried) {
			x->has_gap = true;
			return false;
		}
		(void)condvar_wait(&x->drained, &x->lock, deadline_after_ms(LOOK_MS));
	}
	return true;
}

bool httpd_stream_write(struct httpd_exchange *x, const void *bytes, size_t len)
{
	pthread_mutex_lock(&x->lock);
	bool good = wait_room(x) && add(x, bytes, len);
	pthread_mutex_unlock(&x->lock);
	return good;
}

void httpd_stream_hurry(struct httpd_exchange *x)
{
	pthread_mutex_lock(&x->lock);
	x->is_hurried = true;
	pthread_cond_broadcast(&x->drained);
	pthread_mutex_unlock(&x->lock);
}

bool httpd_stream_offer(struct httpd_exchange *x, const void *bytes, size_t len)
{
	pthread_mutex_lock(&x->lock);
	bool good = x->back.len < HTTPD_EXCHANGE_STREAM && add(x, bytes, len);
	pthread_mutex_unlock(&x->lock);
	return good;
}

void httpd_stream_end(struct httpd_exchange *x, bool is_whole)
{
	pthread_mutex_lock(&x->lock);
	x->is_ended = true;
	x->is_whole = is_whole && !x->has_gap;
	httpd_exchange_wake(x);
	pthread_mutex_unlock(&x->lock);
}

bool httpd_is_gone(struct httpd_exchange *x)
{
	pthread_mutex_lock(&x->lock);
	bool is = x->is_gone;
	pthread_mutex_unlock(&x->lock);
	return is;
}
