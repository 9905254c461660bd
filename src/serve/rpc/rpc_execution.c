/* serve/rpc/rpc_execution.c - see rpc_execution.h. */
#include "serve/rpc/rpc_execution.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/base64.h"
#include "base/language_name.h"
#include "base/mem.h"
#include "base/str.h"
#include "policy/public.h"
#include "serve/rpc/target.h"
#include "serve/typescript.h"

static json_t *chunk_json(const struct rpc_execution *x, const char *bytes, size_t len)
{
	if (!x->is_base64)
		return json_string_lossy(bytes, len);
	cleanup_free char *text = base64_encode(bytes, len, NULL);
	return text ? json_string(text) : NULL;
}

static void notify(struct rpc_execution *x, int stream, const char *bytes, size_t len)
{
	const struct sink *sink = &x->rpc->sink;

	if (sink->output && len > 0) {
		const struct sink_output o = { x->session, x->request ? x->request->id : NULL,
					       x->process, stream,
					       bytes,      len };
		sink->output(&o, sink->arg);
		return;
	}
	cleanup_json json_t *params = json_object();
	json_t *data = len ? chunk_json(x, bytes, len) : NULL;
	if (!data)
		return;
	json_object_set_new(params, "session", json_string(x->session));
	if (x->request && x->request->id)
		json_object_set_new(params, "request_id", json_deep_copy(x->request->id));
	if (x->process)
		json_object_set_new(params, "process", json_integer((json_int_t)x->process));
	json_object_set_new(params, "stream", json_string(stream == 2 ? "stderr" : "stdout"));
	json_object_set_new(params, "data", data);
	if (x->is_base64)
		json_object_set_new(params, "encoding", json_string("base64"));
	size_t text_len = 0;
	cleanup_free char *text = json_text(params, &text_len);
	if (text)
		(void)rpc_notify(x->rpc, "output", text, text_len);
}

/* How many bytes at the end belong to an incomplete UTF-8 character. */
static size_t open_tail(const char *bytes, size_t len)
{
	for (size_t n = 1; n <= 3 && n <= len; n++) {
		unsigned char c = (unsigned char)bytes[len - n];
		size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
		if ((c & 0xc0) == 0x80)
			continue;
		return want > n ? n : 0;
	}
	return 0;
}

static void send_output(int stream, const char *bytes, size_t len, void *arg)
{
	struct rpc_execution *x = arg;
	int i = stream == 2;

	if (x->is_base64) {
		notify(x, stream, bytes, len);
		return;
	}
	size_t before = x->rest[i].len, total = before + len;
	cleanup_free char *joined = before ? mem_alloc(total) : NULL;
	if (before && !joined)
		return;
	if (joined) {
		memcpy(joined, x->rest[i].bytes, before);
		memcpy(joined + before, bytes, len);
		bytes = joined;
	}
	size_t tail = open_tail(bytes, total);
	memcpy(x->rest[i].bytes, bytes + total - tail, tail);
	x->rest[i].len = tail;
	notify(x, stream, bytes, total - tail);
}

void rpc_execution_flush(struct rpc_execution *x)
{
	for (int i = 0; i < 2; i++) {
		notify(x, i + 1, x->rest[i].bytes, x->rest[i].len);
		x->rest[i].len = 0;
	}
}

static int read_stdin(struct rpc_execution *x, struct cordon_error **reterr)
{
	const char *text = NULL, *coded = NULL;
	int r = target_string(x->request, "stdin", &text, reterr);

	if (r == 0)
		r = target_string(x->request, "stdin_base64", &coded, reterr);
	if (r < 0 || (!text && !coded))
		return r;
	if (coded) {
		r = base64_decode(coded, strlen(coded), &x->stdin_bytes, &x->options.stdin_len,
				  reterr);
		x->options.stdin_bytes = x->stdin_bytes;
		return r;
	}
	x->options.stdin_bytes = text;
	x->options.stdin_len = json_string_length(json_object_get(x->request->params, "stdin"));
	return 0;
}

/* Parameter `stream`: true, false or "base64". */
static int read_stream(struct rpc_execution *x, struct cordon_error **reterr)
{
	const json_t *stream = json_object_get(x->request->params, "stream");
	bool keeps = true;
	int r = target_bool(x->request, "keep_output", &keeps, reterr);

	if (r < 0)
		return r;
	x->options.discard_output = !keeps;
	if (!stream || json_is_false(stream) || json_is_null(stream))
		return 0;
	x->is_base64 = str_eq(json_string_value(stream), "base64");
	if (!json_is_true(stream) && !x->is_base64)
		return err_set(reterr, CORDON_INVALID,
			       "/params/stream must be true, false or \"base64\"");
	x->options.output = send_output;
	x->options.output_arg = x;
	return 0;
}

/* The policy of a key is the most that its executions get, whatever they ask for. What runs in the
 * background is no execution. */
static void keep_within(struct rpc_execution *x)
{
	const struct rpc *c = x->rpc;
	const struct policy *most = c->is_limited && c->policy ? &c->policy->p : NULL;

	if (!most)
		return;
	if (x->options.timeout_ms > most->timeout_ms &&
	    !json_is_true(json_object_get(x->request->params, "background")))
		x->options.timeout_ms = most->timeout_ms;
	if (x->options.tool_calls > most->tool_calls)
		x->options.tool_calls = most->tool_calls;
}

static int read_limits(struct rpc_execution *x, struct cordon_error **reterr)
{
	const json_t *timeout = json_object_get(x->request->params, "timeout_ms");
	bool validate = true;
	int r = 0;

	if (json_is_null(timeout))
		x->options.timeout_ms = UINT64_MAX;
	else
		r = target_uint(x->request, "timeout_ms", &x->options.timeout_ms, reterr);
	if (r == 0)
		r = target_uint(x->request, "tool_calls", &x->options.tool_calls, reterr);
	if (r == 0)
		r = target_bool(x->request, "validate", &validate, reterr);
	x->options.skip_validation = !validate;
	keep_within(x);
	return r;
}

int rpc_execution_read_rest(struct request *q, const char *session, struct rpc_execution *ret,
			    struct cordon_error **reterr)
{
	*ret = (struct rpc_execution){ .request = q, .rpc = q->rpc, .session = session };
	int r = read_stdin(ret, reterr);
	if (r == 0)
		r = read_limits(ret, reterr);
	if (r == 0)
		r = read_stream(ret, reterr);
	return r;
}

/* Binary columns: `buffer` is their table, and they follow the request as its attachment. */
static int read_columns(struct rpc_execution *x, struct cordon_error **reterr)
{
	const struct attachment a = x->request->attachment;
	json_t *table = NULL;
	int r = target_bool(x->request, "buffers", &x->options.takes_buffer, reterr);

	if (r == 0)
		r = json_get_object(x->request->params, "/params", "buffer", &table, reterr);
	if (r < 0 || (!table && a.bytes == 0))
		return r;
	if (!table || a.bytes == 0)
		return err_set(reterr, CORDON_INVALID,
			       "/params/buffer needs an attachment, and an attachment needs it");
	if (a.bytes > a.max)
		return err_limit(reterr, ERR_LIMIT_LENGTH,
				 "the value is too large (%" PRIu64 " bytes, max %" PRIu64
				 "); the policy's value_bytes raises the limit",
				 a.bytes, a.max);
	x->columns = json_text(table, NULL);
	if (a.fd < 0 || !x->columns)
		return err_set(reterr, CORDON_NOMEM,
			       "no memory for an attachment of %" PRIu64 " bytes", a.bytes);
	x->options.buffer_json = x->columns;
	x->options.buffer_fd = a.fd;
	return 0;
}

int rpc_execution_read(struct request *q, const char *session, struct rpc_execution *ret,
		       struct cordon_error **reterr)
{
	json_t *context = NULL;
	const char *code = NULL;
	int r = target_need(q, "code", &code, reterr);

	if (r < 0)
		return r;
	r = rpc_execution_read_rest(q, session, ret, reterr);
	if (r < 0)
		return r;
	ret->options.code = code;
	ret->options.code_len = json_string_length(json_object_get(q->params, "code"));
	if (!json_is_string(json_object_get(q->params, "context")))
		r = json_get_object(q->params, "/params", "context", &context, reterr);
	if (r == 0 && !context)
		r = json_get_object(q->params, "/params", "variables", &context, reterr);
	if (r == 0 && context) {
		ret->context = json_text(context, NULL);
		if (!ret->context)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
		ret->options.context_json = ret->context;
	}
	return r < 0 ? r : read_columns(ret, reterr);
}

void rpc_execution_done(struct rpc_execution *x)
{
	free(x->stdin_bytes);
	free(x->context);
	free(x->columns);
}

/* TypeScript becomes JavaScript, if the request names it as the language. */
static int strip_types(const struct request *q, struct rpc_execution *x, struct buf *ret,
		       struct cordon_error **reterr)
{
	const char *name = json_string_value(json_object_get(q->params, "language"));
	struct language_name known = { 0 };

	if (!language_name_find(name, &known) || !known.is_typescript)
		return 0;
	buf_init(ret, SIZE_MAX / 2);
	if (buf_add(ret, x->options.code, x->options.code_len) < 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	int r = typescript_strip(NULL, ret, reterr);
	x->options.code = buf_text(ret);
	x->options.code_len = ret->len;
	return r;
}

/* The columns of the value follow the answer. */
static int take_columns(struct request *q, const struct cordon_result *result,
			struct cordon_error **reterr)
{
	uint64_t bytes = 0;
	int fd = cordon_result_buffer(result, &bytes);

	if (fd < 0)
		return 0;
	q->answer.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (q->answer.fd < 0)
		return err_errno(reterr, errno, "keep the binary columns");
	q->answer.bytes = bytes;
	return 0;
}

int rpc_execution_run(struct request *q, struct client_session *cs, struct buf *ret,
		      struct cordon_error **reterr)
{
	cleanup_rpc_execution struct rpc_execution x = { 0 };
	struct cordon_result *result = NULL;
	int r = rpc_execution_read(q, cs->id, &x, reterr);

	cleanup_buf struct buf script = { 0 };
	if (r == 0)
		r = strip_types(q, &x, &script, reterr);
	if (r == 0)
		r = client_session_pass(&q->rpc->sessions, cs, reterr);
	if (r == 0)
		r = cordon_session_execute(cs->session, &x.options, &result, reterr);
	if (r < 0)
		return r;
	rpc_execution_flush(&x);
	r = take_columns(q, result, reterr);
	if (r == 0)
		r = buf_add_str(ret, cordon_result_json(result));
	cordon_result_free(result);
	return r;
}
