/* session/execution_buffer.c - see execution_buffer.h. */
#include "session/execution_buffer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"
#include "session/result.h"
#include "wire/columns.h"

uint64_t session_value_bytes(const struct cordon_session *s)
{
	return s->policy.value_bytes;
}

/* The other guests are shells: their variables are texts. */
static bool takes_columns(enum guest_kind kind)
{
	return kind == GUEST_KIND_PYTHON || kind == GUEST_KIND_R || kind == GUEST_KIND_NODE;
}

int execution_buffer_begin(struct execution *x, struct cordon_error **reterr)
{
	const struct cordon_execute_options *o = x->options;
	cleanup_columns struct columns *c = NULL;

	x->context_fd = x->value_fd = -1;
	x->takes_buffer = o->takes_buffer && takes_columns(x->engine->kind) && x->engine->wire &&
			  x->session->policy.value_bytes > 0;
	if (!o->buffer_json)
		return 0;
	if (!takes_columns(x->engine->kind))
		return err_set(reterr, CORDON_INVALID, "guest %s takes no binary columns",
			       guest_name(x->engine->kind));
	int r = columns_new(o->buffer_json, strlen(o->buffer_json), x->session->policy.value_bytes,
			    &c, reterr);
	if (r < 0)
		return r;
	if (lseek(o->buffer_fd, 0, SEEK_END) != (off_t)columns_get_bytes(c))
		return err_set(reterr, CORDON_INVALID,
			       "the binary columns are not as long as their table says");
	r = os_seal_bytes(o->buffer_fd);
	if (r < 0)
		return err_errno(reterr, -r, "seal the binary columns");
	x->context_fd = o->buffer_fd;
	x->context_bytes = columns_get_bytes(c);
	return 0;
}

/* The size is fixed before the guest gets the file. */
static int make_file(struct execution *x, uint64_t bytes, struct cordon_error **reterr)
{
	cleanup_close int fd = os_memory_file("cordon-value", true);

	if (fd < 0)
		return err_errno(reterr, -fd, "make a file in memory");
	if (ftruncate(fd, (off_t)bytes) < 0)
		return err_errno(reterr, errno, "make a file of %llu bytes in memory",
				 (unsigned long long)bytes);
	int r = os_seal_size(fd);
	if (r < 0)
		return err_errno(reterr, -r, "seal a file in memory");
	x->value_fd = TAKE_FD(fd);
	return 0;
}

int execution_buffer_answer(struct execution *x, const struct wire_message *m,
			    struct cordon_error **reterr)
{
	struct wire *w = x->engine->wire;
	uint64_t max = x->session->policy.value_bytes;
	int r = 0;

	if (m->bytes == 0) {
		if (x->context_fd < 0 || x->is_context_sent)
			return wire_send_no_buffer(w, x->id, "there is none", reterr);
		x->is_context_sent = true;
		return wire_send_buffer(w, x->id, x->context_bytes, x->context_fd, reterr);
	}
	if (!x->takes_buffer || x->value_fd >= 0)
		return wire_send_no_buffer(w, x->id, "this execution gets none", reterr);
	if (m->bytes > max)
		return wire_send_no_buffer(w, x->id, "it exceeds the policy's value_bytes", reterr);
	r = make_file(x, m->bytes, reterr);
	return r < 0 ? r : wire_send_buffer(w, x->id, m->bytes, x->value_fd, reterr);
}

/* A guest that still maps the file writable, or that sealed it against seals, keeps the host from
 * sealing it: it breaks the protocol. */
int execution_buffer_take(struct execution *x, const struct wire_message *m,
			  struct cordon_error **reterr)
{
	cleanup_columns struct columns *c = NULL;

	if (!m->buffer.data)
		return 0;
	if (x->value_fd < 0)
		return err_set(reterr, CORDON_PROTOCOL,
			       "the guest names a buffer that it was not given");
	int r = columns_new(m->buffer.data, m->buffer.len, x->session->policy.value_bytes, &c,
			    reterr);
	if (r < 0)
		return r;
	r = os_seal(x->value_fd);
	if (r < 0)
		return err_errno(reterr, -r, "seal the guest's binary columns");
	r = columns_check(c, x->value_fd, reterr);
	if (r < 0 || x->stop_by != 0)
		return r;
	x->result->buffer_json = str_ndup(m->buffer.data, m->buffer.len);
	if (!x->result->buffer_json)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	x->result->buffer_bytes = columns_get_bytes(c);
	x->result->buffer_fd = TAKE_FD(x->value_fd);
	return 0;
}

/* A guest may keep the descriptor of its variables' columns. Their pages are the host's, so they
 * are given back at once. */
void execution_buffer_end(struct execution *x)
{
	if (x->context_fd >= 0)
		(void)!ftruncate(x->context_fd, 0);
	close_fdp(&x->value_fd);
}
