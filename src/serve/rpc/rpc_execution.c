/* serve/rpc/rpc_execution.c - see rpc_execution.h. */
#include "serve/rpc/rpc_execution.h"

#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"
#include "serve/rpc/target.h"

static json_t *chunk_json(const struct rpc_execution *x, const char *bytes, size_t len)
{
	if (!x->is_base64)
		return json_string_lossy(bytes, len);
	cleanup_free char *text = base64_encode(bytes, len, NULL);
	return text ? json_string(text) : NULL;
}

static void notify(struct rpc_execution *x, int stream, const char *bytes, size_t len)
{
	cleanup_json json_t *params = json_object();
	json_t *data = len ? chunk_json(x, bytes, len) : NULL;

	if (!data)
		return;
	json_object_set_new(params, "session", json_string(x->session));
	if (x->request->id)
		json_object_set(params, "request_id", x->request->id);
	json_object_set_new(params, "stream", json_string(stream == 2 ? "stderr" : "stdout"));
	json_object_set_new(params, "data", data);
	if (x->is_base64)
		json_object_set_new(params, "encoding", json_string("base64"));
	size_t text_len = 0;
	cleanup_free char *text = json_text(params, &text_len);
	if (text)
		(void)rpc_notify(x->request->rpc, "output", text, text_len);
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
	return r;
}

int rpc_execution_read(struct request *q, const char *session, struct rpc_execution *ret,
		       struct cordon_error **reterr)
{
	json_t *context = NULL;

	*ret = (struct rpc_execution){ .request = q, .session = session };
	int r = target_need(q, "code", &ret->options.code, reterr);
	if (r < 0)
		return r;
	ret->options.code_len = json_string_length(json_object_get(q->params, "code"));
	r = json_get_object(q->params, "/params", "context", &context, reterr);
	if (r == 0 && context) {
		ret->context = json_text(context, NULL);
		if (!ret->context)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
		ret->options.context_json = ret->context;
	}
	if (r == 0)
		r = read_stdin(ret, reterr);
	if (r == 0)
		r = read_limits(ret, reterr);
	if (r == 0)
		r = read_stream(ret, reterr);
	return r;
}

void rpc_execution_done(struct rpc_execution *x)
{
	free(x->stdin_bytes);
	free(x->context);
}

int rpc_execution_run(struct request *q, struct client_session *cs, struct buf *ret,
		      struct cordon_error **reterr)
{
	cleanup_rpc_execution struct rpc_execution x = { 0 };
	struct cordon_result *result = NULL;
	int r = rpc_execution_read(q, cs->id, &x, reterr);

	if (r == 0)
		r = client_session_pass(&q->rpc->sessions, cs, reterr);
	if (r == 0)
		r = cordon_session_execute(cs->session, &x.options, &result, reterr);
	if (r < 0)
		return r;
	rpc_execution_flush(&x);
	r = buf_add_str(ret, cordon_result_json(result));
	cordon_result_free(result);
	return r;
}
