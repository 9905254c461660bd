/* wire/wire.c - see wire.h. */
#include "wire/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "wire/message.h"
#include "wire/queue.h"
#include "wire/window.h"

enum {
	TOKEN_LEN = 64,
	VERSION = 1,
	FIRST_BYTES = 16384,     /* of the input buffer */
	KEEP_BYTES = 65536,      /* an empty input buffer above this is freed */
	HELLO_BYTES = 4096,      /* longest line before the token was checked */
	QUEUE_HIGH = 262144,     /* with more unsent bytes, no further message is returned */
	UNKNOWN_NAME_BYTES = 64, /* longest name of an unknown type that is kept */
	ENVELOPE_BYTES = 512     /* of a tool call, around its arguments */
};

struct wire {
	int fd;
	uint64_t message_bytes, rpc_bytes, call_bytes;
	char token[TOKEN_LEN + 1];
	bool is_authenticated, is_broken, is_eof;
	/* Input: start..end is unread, start..scanned has no newline. */
	char *in;
	size_t in_start, in_end, in_cap, in_scanned;
	struct queue out;
	/* The running execution; id 0: none. */
	uint64_t id, tool_calls;
	struct window calls;
	struct wire_counts counts;
	uint64_t others; /* messages that count against counts.limit */
};

int wire_new(int fd, const struct wire_options *opts, struct wire **ret,
	     struct cordon_error **reterr)
{
	if (!opts->token || strlen(opts->token) != TOKEN_LEN)
		return err_set(reterr, CORDON_INVALID, "the wire's token must be 64 hex digits");
	int r = file_set_nonblock(fd, true);
	if (r < 0)
		return err_errno(reterr, -r, "make the wire non-blocking");
	struct wire *w = mem_alloc(sizeof(*w));
	if (!w)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	w->fd = fd;
	w->message_bytes = opts->message_bytes ? opts->message_bytes : 1048576;
	w->rpc_bytes = opts->rpc_bytes ? opts->rpc_bytes : 8388608;
	if (w->rpc_bytes < w->message_bytes)
		w->rpc_bytes = w->message_bytes;
	w->call_bytes = w->message_bytes;
	memcpy(w->token, opts->token, TOKEN_LEN + 1);
	queue_init(&w->out, opts->queue_bytes ? opts->queue_bytes : 64 << 20);
	wire_begin(w, 0, 0);
	*ret = w;
	return 0;
}

struct wire *wire_free(struct wire *w)
{
	if (!w)
		return NULL;
	explicit_bzero(w->token, sizeof(w->token));
	close_fdp(&w->fd);
	free(w->in);
	queue_done(&w->out);
	free(w);
	return NULL;
}

void wire_allow_calls(struct wire *w, uint64_t argument_bytes)
{
	w->call_bytes = w->message_bytes;
	if (argument_bytes > w->message_bytes)
		w->call_bytes = argument_bytes + ENVELOPE_BYTES;
}

int wire_fd(const struct wire *w)
{
	return w->fd;
}

void wire_begin(struct wire *w, uint64_t id, uint64_t tool_calls)
{
	uint64_t limit = 10000;

	if (tool_calls != UINT64_MAX)
		limit = tool_calls > (UINT64_MAX - 10) / 10 ? UINT64_MAX : 10 + 10 * tool_calls;
	w->id = id;
	w->tool_calls = tool_calls;
	w->calls = (struct window){ 0 };
	w->counts = (struct wire_counts){ .limit = limit };
	w->others = 0;
}

void wire_end(struct wire *w)
{
	w->id = 0;
}

struct wire_counts wire_get_counts(const struct wire *w)
{
	return w->counts;
}

/* Makes room after in_end: frees, moves or enlarges the buffer, never beyond the longest legal
 * line. */
static int make_room(struct wire *w, struct cordon_error **reterr)
{
	size_t longest = w->rpc_bytes > w->call_bytes ? w->rpc_bytes : w->call_bytes;
	size_t most = longest + FIRST_BYTES;

	if (w->in_start == w->in_end) {
		w->in_start = w->in_end = w->in_scanned = 0;
		if (w->in_cap > KEEP_BYTES) {
			free(w->in);
			w->in = NULL;
			w->in_cap = 0;
		}
	}
	if (w->in_end < w->in_cap)
		return 0;
	if (w->in_start > 0) {
		memmove(w->in, w->in + w->in_start, w->in_end - w->in_start);
		w->in_end -= w->in_start;
		w->in_scanned -= w->in_start;
		w->in_start = 0;
		return 0;
	}
	size_t cap = w->in_cap ? w->in_cap * 2 : FIRST_BYTES;
	if (cap > most)
		cap = most;
	if (cap == w->in_cap)
		return 0;
	char *wider = mem_grow(w->in, cap, 1);
	if (!wider)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	w->in = wider;
	w->in_cap = cap;
	return 0;
}

int wire_fill(struct wire *w, struct cordon_error **reterr)
{
	if (w->is_eof)
		return 0;
	int r = make_room(w, reterr);
	if (r < 0)
		return r;
	if (w->in_end == w->in_cap)
		return 0; /* full of complete lines: call wire_next() first */
	ssize_t n = recv(w->fd, w->in + w->in_end, w->in_cap - w->in_end, MSG_DONTWAIT);
	if (n > 0) {
		w->in_end += (size_t)n;
		return 1;
	}
	if (n == 0 || errno == ECONNRESET || errno == EPIPE) {
		w->is_eof = true;
		return 0;
	}
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	return err_errno(reterr, errno, "read from the guest");
}

static int too_large(size_t len, uint64_t max, struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_PROTOCOL,
		       "IPC message too large (%zu bytes, max %" PRIu64 ")", len, max);
}

/* The limit for a line of this type. */
static uint64_t longest_of(const struct wire *w, enum wire_type type)
{
	if (type == WIRE_RESULT || type == WIRE_OUTPUT)
		return w->rpc_bytes;
	return type == WIRE_TOOL_CALL ? w->call_bytes : w->message_bytes;
}

/* Finds the next line and checks its length before anything else. A line that is too long is
 * refused even before its end has arrived. 1: found, 0: incomplete. */
static int find_line(struct wire *w, char **ret, size_t *ret_len, struct cordon_error **reterr)
{
	if (w->in_start == w->in_end)
		return 0;
	char *line = w->in + w->in_start;
	char *end = memchr(w->in + w->in_scanned, '\n', w->in_end - w->in_scanned);
	size_t len = (size_t)((end ? end : w->in + w->in_end) - line);
	uint64_t max = w->is_authenticated ? w->message_bytes : HELLO_BYTES;

	if (len > max && w->is_authenticated)
		max = longest_of(w, message_type(line, len));
	if (len > max)
		return too_large(len, max, reterr);
	if (!end) {
		w->in_scanned = w->in_end;
		return 0;
	}
	w->in_start += len + 1;
	w->in_scanned = w->in_start;
	*ret = line;
	*ret_len = len;
	return 1;
}

static int take_hello(struct wire *w, char *line, size_t len, struct wire_message *ret,
		      struct cordon_error **reterr)
{
	struct wire_text token = { 0 };
	int64_t version = 0;
	int r = message_parse_hello(line, len, ret, &token, &version, NULL);

	if (r < 0 || token.len != TOKEN_LEN || !random_equal(token.data, w->token, TOKEN_LEN))
		return err_set(reterr, CORDON_PROTOCOL,
			       "IPC authentication failed: invalid token from child process");
	if (version != VERSION)
		return err_set(reterr, CORDON_PROTOCOL,
			       "the guest speaks version %" PRId64 " of the wire, not %d", version,
			       VERSION);
	explicit_bzero(w->token, sizeof(w->token));
	w->is_authenticated = true;
	return 1;
}

/* Whether the session should get this message. Others are counted and dropped. */
static bool is_current(struct wire *w, struct wire_message *m)
{
	if (m->type == WIRE_UNKNOWN) {
		w->counts.unknown++;
		w->others++;
		return true;
	}
	if (w->id == 0 || m->id != w->id ||
	    (m->type == WIRE_TOOL_CALL && !window_take(&w->calls, m->call))) {
		w->counts.stale++;
		w->others++;
		return false;
	}
	if (m->type == WIRE_BUFFER)
		w->others++;
	/* The tools room refuses calls over the budget. Calls beyond it also count as flooding. */
	if (m->type == WIRE_TOOL_CALL && ++w->counts.tool_calls > w->tool_calls)
		w->others++;
	return true;
}

/* Shortens a name for the log, at a character boundary. */
static void cut_name(struct wire_text *t)
{
	size_t len = t->len;

	if (len <= UNKNOWN_NAME_BYTES)
		return;
	for (len = UNKNOWN_NAME_BYTES; len > 0 && (t->data[len] & 0xc0) == 0x80; len--)
		;
	((char *)t->data)[len] = '\0';
	t->len = len;
}

/* 1: return *ret to the caller, 0: it was ignored. */
static int take_message(struct wire *w, char *line, size_t len, struct wire_message *ret,
			struct cordon_error **reterr)
{
	int r = message_parse(line, len, ret, reterr);

	if (r < 0)
		return r;
	if (len > longest_of(w, ret->type))
		return too_large(len, longest_of(w, ret->type), reterr);
	w->counts.messages++;
	bool is_wanted = is_current(w, ret);
	if (w->others > w->counts.limit)
		return err_set(reterr, CORDON_PROTOCOL,
			       "Maximum IPC messages (%" PRIu64 ") exceeded; possible flood attack",
			       w->counts.limit);
	if (ret->type == WIRE_UNKNOWN)
		cut_name(&ret->name);
	return is_wanted;
}

int wire_next(struct wire *w, struct wire_message *ret, struct cordon_error **reterr)
{
	struct wire_message m = { 0 };
	char *line = NULL;
	size_t len = 0;
	int r;

	if (w->is_broken)
		return err_set(reterr, CORDON_PROTOCOL, "the guest's wire is broken");
	if (queue_get_len(&w->out) > QUEUE_HIGH)
		return 0;
	do {
		r = find_line(w, &line, &len, reterr);
		if (r == 0)
			return 0;
		if (r > 0)
			r = w->is_authenticated ? take_message(w, line, len, &m, reterr)
						: take_hello(w, line, len, &m, reterr);
	} while (r == 0);
	if (r < 0) {
		w->is_broken = true;
		return r;
	}
	*ret = m;
	return 1;
}

bool wire_is_closed(const struct wire *w)
{
	return w->is_eof && (w->in_start == w->in_end || w->in_scanned == w->in_end);
}

short wire_events(const struct wire *w)
{
	size_t queued = queue_get_len(&w->out);
	int events = queued > 0 ? POLLOUT : 0;

	if (queued <= QUEUE_HIGH && !w->is_eof)
		events |= POLLIN;
	return (short)events;
}

size_t wire_get_queued(const struct wire *w)
{
	return queue_get_len(&w->out);
}

int wire_flush(struct wire *w, struct cordon_error **reterr)
{
	int r = queue_send(&w->out, w->fd);

	if (r >= 0)
		return r;
	queue_drop(&w->out);
	if (r == -EPIPE || r == -ECONNRESET)
		return 0;
	return err_errno(reterr, -r, "write to the guest");
}

/* Ends the line begun with queue_mark and sends as much as the socket takes. */
static int finish(struct wire *w, struct cordon_error **reterr)
{
	int r = queue_seal(&w->out);

	if (r == -CORDON_NOMEM)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (r < 0)
		return err_set(reterr, CORDON_LIMIT,
			       "message to the guest too large: %zu bytes may wait to be read",
			       w->out.max);
	return wire_flush(w, reterr);
}

int wire_send_line(struct wire *w, const char *line, size_t len, struct cordon_error **reterr)
{
	queue_mark(&w->out);
	queue_add_json(&w->out, line, len);
	return finish(w, reterr);
}

static void add_stdin(struct queue *q, const struct wire_execute *x)
{
	if (!x->has_stdin)
		return;
	queue_add_text(q, ",\"stdin\":");
	if (x->stdin_bytes == 0) {
		queue_add_text(q, "true");
		return;
	}
	queue_add_text(q, "{\"from\":");
	queue_add_uint(q, x->stdin_from);
	queue_add_text(q, ",\"bytes\":");
	queue_add_uint(q, x->stdin_bytes);
	queue_add_text(q, "}");
}

int wire_send_execute(struct wire *w, const struct wire_execute *x, struct cordon_error **reterr)
{
	struct queue *q = &w->out;

	if (!str_is_utf8(x->code, x->code_len))
		return err_set(reterr, CORDON_INVALID, "the code is not valid UTF-8");
	queue_mark(q);
	queue_add_text(q, "{\"type\":\"execute\",\"id\":");
	queue_add_uint(q, x->id);
	queue_add_text(q, ",\"code\":");
	queue_add_string(q, x->code, x->code_len);
	if (x->context_json) {
		queue_add_text(q, ",\"context\":");
		queue_add_json(q, x->context_json,
			       x->context_len ? x->context_len : strlen(x->context_json));
	}
	if (x->buffer_json) {
		queue_add_text(q, ",\"buffer\":");
		queue_add_json(q, x->buffer_json, strlen(x->buffer_json));
	}
	if (x->takes_buffer)
		queue_add_text(q, ",\"buffers\":true");
	if (x->env_json) {
		queue_add_text(q, ",\"env\":");
		queue_add_json(q, x->env_json, strlen(x->env_json));
	}
	if (x->directory) {
		queue_add_text(q, ",\"directory\":");
		queue_add_string(q, x->directory, strlen(x->directory));
	}
	if (x->stdin_path) {
		queue_add_text(q, ",\"stdin\":");
		queue_add_string(q, x->stdin_path, strlen(x->stdin_path));
	}
	if (x->is_validated)
		queue_add_text(q, ",\"validate\":true");
	if (x->is_shown)
		queue_add_text(q, ",\"show\":true");
	if (x->is_asking)
		queue_add_text(q, ",\"asking\":true");
	if (x->args_json) {
		queue_add_text(q, ",\"args\":");
		queue_add_json(q, x->args_json, strlen(x->args_json));
	}
	if (x->is_last)
		queue_add_text(q, ",\"last\":true");
	add_stdin(q, x);
	queue_add_text(q, "}");
	return finish(w, reterr);
}

int wire_send_inspect(struct wire *w, const struct wire_inspect *m, struct cordon_error **reterr)
{
	struct queue *q = &w->out;

	if (!str_is_utf8(m->code, m->code_len))
		return err_set(reterr, CORDON_INVALID, "the code is not valid UTF-8");
	queue_mark(q);
	queue_add_text(q, "{\"type\":\"inspect\",\"id\":");
	queue_add_uint(q, m->id);
	queue_add_text(q, ",\"question\":");
	queue_add_string(q, m->question, strlen(m->question));
	queue_add_text(q, ",\"code\":");
	queue_add_string(q, m->code, m->code_len);
	if (m->env_json) {
		queue_add_text(q, ",\"env\":");
		queue_add_json(q, m->env_json, strlen(m->env_json));
	}
	queue_add_text(q, "}");
	return finish(w, reterr);
}

int wire_send_interrupt(struct wire *w, uint64_t id, struct cordon_error **reterr)
{
	queue_mark(&w->out);
	queue_add_text(&w->out, "{\"type\":\"interrupt\",\"id\":");
	queue_add_uint(&w->out, id);
	queue_add_text(&w->out, "}");
	return finish(w, reterr);
}

static void begin_buffer(struct wire *w, uint64_t id)
{
	queue_mark(&w->out);
	queue_add_text(&w->out, "{\"type\":\"buffer\",\"id\":");
	queue_add_uint(&w->out, id);
}

int wire_send_buffer(struct wire *w, uint64_t id, uint64_t bytes, int fd,
		     struct cordon_error **reterr)
{
	begin_buffer(w, id);
	queue_add_text(&w->out, ",\"bytes\":");
	queue_add_uint(&w->out, bytes);
	queue_add_text(&w->out, "}");
	int r = queue_attach(&w->out, fd);
	if (r == -CORDON_LIMIT)
		return err_set(reterr, CORDON_PROTOCOL, "the guest does not read its buffers");
	if (r < 0)
		return err_errno(reterr, -r, "send a buffer to the guest");
	return finish(w, reterr);
}

int wire_send_no_buffer(struct wire *w, uint64_t id, const char *why, struct cordon_error **reterr)
{
	begin_buffer(w, id);
	queue_add_text(&w->out, ",\"error\":");
	queue_add_string(&w->out, why, strlen(why));
	queue_add_text(&w->out, "}");
	return finish(w, reterr);
}

static void begin_tool_result(struct wire *w, uint64_t id, uint64_t call)
{
	queue_mark(&w->out);
	queue_add_text(&w->out, "{\"type\":\"tool_result\",\"id\":");
	queue_add_uint(&w->out, id);
	queue_add_text(&w->out, ",\"call\":");
	queue_add_uint(&w->out, call);
}

int wire_send_tool_value(struct wire *w, uint64_t id, uint64_t call, const char *json, size_t len,
			 struct cordon_error **reterr)
{
	begin_tool_result(w, id, call);
	queue_add_text(&w->out, ",\"value\":");
	queue_add_json(&w->out, json, len);
	queue_add_text(&w->out, "}");
	return finish(w, reterr);
}

int wire_send_tool_error(struct wire *w, uint64_t id, uint64_t call, const char *message,
			 struct cordon_error **reterr)
{
	begin_tool_result(w, id, call);
	queue_add_text(&w->out, ",\"error\":");
	queue_add_string(&w->out, message, strlen(message));
	queue_add_text(&w->out, "}");
	return finish(w, reterr);
}
