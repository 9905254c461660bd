/* serve/e2b/e2b_execute.c - /execute: runs code in a context, and tells line by line what happens.
 * A client that leaves interrupts the code. */
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "serve/e2b/e2b_context.h"
#include "serve/e2b/e2b_result.h"
#include "serve/e2b/e2b_state.h"
#include "serve/server/activity.h"
#include "serve/typescript.h"
#include "session/result.h"

enum { CODE_MAX = 8 << 20, UTF8_MAX = 4, REST_MAX = 1024 };

struct execution {
	struct e2b_sandbox *b;
	struct e2b_context *c;
	struct httpd_exchange *x;
	_Atomic bool is_left, has_turn;
	struct {
		char bytes[REST_MAX]; /* the beginning of a character whose rest comes later */
		size_t len;
	} rest[2];
};

/* In a thread of the server: it must not wait. */
static void on_left(void *arg)
{
	struct execution *x = arg;

	x->is_left = true;
	if (x->has_turn)
		e2b_context_abandon(x->b, x->c);
}

/* Takes the message. */
static void tell(struct execution *x, json_t *message)
{
	size_t len = 0;
	cleanup_free char *text = json_text(message, &len);

	json_decref(message);
	if (!text)
		return;
	text[len] = '\n'; /* instead of the NUL */
	if (!httpd_stream_write(x->x, text, len + 1))
		on_left(x);
}

static void tell_text(struct execution *x, int stream, const char *bytes, size_t len)
{
	json_t *j = json_object();
	char now[CLOCK_UTC_SIZE];

	clock_utc_text(now);
	json_object_set_new(j, "type", json_string(stream == 2 ? "stderr" : "stdout"));
	json_object_set_new(j, "text", json_string_lossy(bytes, len));
	json_object_set_new(j, "timestamp", json_string(now));
	tell(x, j);
}

/* How many bytes at the end begin a character that is not complete. R prints a line in pieces,
 * which are one message. */
static size_t unfinished(const struct execution *x, const char *bytes, size_t len)
{
	if (str_eq(x->c->guest, "r")) {
		const char *end = memrchr(bytes, '\n', len);
		size_t n = end ? (size_t)(bytes + len - end - 1) : len;

		return n < REST_MAX ? n : 0;
	}
	for (size_t n = 1; n < UTF8_MAX && n <= len; n++) {
		unsigned char c = (unsigned char)bytes[len - n];
		size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

		if ((c & 0xc0) == 0x80)
			continue;
		return need > n ? n : 0;
	}
	return 0;
}

static void on_output(int stream, const char *bytes, size_t len, void *arg)
{
	struct execution *x = arg;
	cleanup_buf struct buf whole = { 0 };
	char *rest = x->rest[stream == 2].bytes;
	size_t *rest_len = &x->rest[stream == 2].len;

	buf_init(&whole, len + REST_MAX);
	if (buf_add(&whole, rest, *rest_len) < 0 || buf_add(&whole, bytes, len) < 0)
		return;
	*rest_len = unfinished(x, whole.data, whole.len);
	memcpy(rest, whole.data + whole.len - *rest_len, *rest_len);
	if (whole.len > *rest_len)
		tell_text(x, stream, whole.data, whole.len - *rest_len);
}

static void flush_rest(struct execution *x)
{
	for (int i = 0; i < 2; i++)
		if (x->rest[i].len)
			tell_text(x, i + 1, x->rest[i].bytes, x->rest[i].len);
}

/* ---- the environment of one execution */

/* Sets the variables, and returns what was there before, to be set again. */
static int set_env(struct cordon_session *s, const json_t *env, json_t **ret_before,
		   struct cordon_error **reterr)
{
	const char *name;
	json_t *value;
	int r = 0;

	if (!json_object_size(env))
		return 0;
	*ret_before = json_object();
	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
		cleanup_free char *old = cordon_session_getenv(s, name);

		if (!json_is_string(value))
			return err_set(reterr, CORDON_INVALID, "env_vars: '%.64s' must be a text",
				       name);
		json_object_set_new(*ret_before, name, old ? json_string(old) : json_null());
		r = cordon_session_setenv(s, name, json_string_value(value), reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

static void restore_env(struct cordon_session *s, json_t *before)
{
	const char *name;
	json_t *value;

	json_object_foreach(before, name, value)(void)
		cordon_session_setenv(s, name, json_string_value(value), NULL);
	json_decref(before);
}

/* ---- one execution */

/* Its turn has come. The environment is as before when the client hears of the end. */
static int run(struct execution *x, const char *code, size_t len, uint64_t number, json_t *before,
	       struct cordon_error **reterr)
{
	struct cordon_execute_options o = { .code = code,
					    .code_len = len,
					    .skip_validation = true,
					    .output = on_output,
					    .output_arg = x,
					    .discard_output = true };
	cleanup_result struct cordon_result *r = NULL;
	json_t *message;
	size_t i;

	httpd_stream_begin(x->x, 200, "application/x-ndjson");
	tell(x, json_pack("{s:s, s:I}", "type", "number_of_executions", "execution_count",
			  (json_int_t)number));
	int code_r = len ? cordon_session_execute(x->c->session, &o, &r, reterr) : 0;
	restore_env(x->c->session, before);
	flush_rest(x);
	if (code_r < 0) {
		message = json_pack("{s:s, s:s, s:s, s:s}", "type", "error", "name", "SandboxError",
				    "value", cordon_error_message(*reterr), "traceback", "");
		tell(x, message);
	}
	cleanup_json json_t *all = r ? e2b_result_messages(x->c, r) : json_array();
	json_array_foreach(all, i, message) tell(x, json_incref(message));
	tell(x, json_pack("{s:s}", "type", "end_of_execution"));
	/* Of a sandbox that was killed meanwhile the client shall not think that it ended. */
	httpd_stream_end(x->x, e2b_sandbox_state(x->b) == E2B_RUNNING);
	return code_r;
}

/* In the books of the tenant: counted, limited and listed. */
static int run_counted(struct execution *x, const char *code, size_t len, const json_t *env,
		       struct cordon_error **reterr)
{
	struct activity *a = NULL;
	json_t *before = NULL;
	uint64_t number = 0;
	const struct activity_options o = { .session = cordon_session_id(x->b->session),
					    .language = x->c->language,
					    .parent = httpd_trace(x->x) };
	int r = e2b_context_begin(x->b, x->c, x->x, &x->is_left, &number, reterr);

	if (r < 0)
		return r;
	x->has_turn = true;
	if (x->is_left)
		e2b_context_abandon(x->b, x->c);
	r = set_env(x->c->session, env, &before, reterr);
	if (r == 0)
		r = activity_begin(x->b->tenant, &o, &a, reterr);
	if (r < 0) {
		restore_env(x->c->session, before);
	} else {
		cleanup_error struct cordon_error *e = NULL;
		int code_r = run(x, code, len, number, before, &e);

		activity_end(x->b->tenant, a,
			     code_r < 0 ? cordon_code_name(cordon_error_code(e)) : "success", NULL);
	}
	x->has_turn = false;
	e2b_context_end(x->b, x->c);
	return r;
}

/* As a notebook does it: if the first line is indented, that much is taken from every line. */
static void dedent(struct buf *code)
{
	const char *first = code->data + strspn(buf_text(code), " \t\r\n");
	size_t indent = 0, n = 0;
	char *out = code->data;

	while (code->len && first - indent > code->data && strchr(" \t", *(first - indent - 1)))
		indent++;
	if (indent == 0)
		return;
	cleanup_free char *prefix = str_ndup(first - indent, indent);
	for (size_t i = 0; prefix && i < code->len; n++) {
		bool is_begin = i == 0 || code->data[i - 1] == '\n';

		if (is_begin && strncmp(code->data + i, prefix, indent) == 0)
			i += indent;
		if (i < code->len)
			out[n] = code->data[i++];
		else
			n--;
	}
	if (prefix) {
		code->len = n;
		out[n] = '\0';
	}
}

static int execute(struct execution *x, const json_t *j, struct cordon_error **reterr)
{
	cleanup_buf struct buf code = { 0 };
	const json_t *text = json_object_get(j, "code");
	int r = 0;

	buf_init(&code, CODE_MAX);
	if (!json_is_string(text))
		return err_set(reterr, CORDON_INVALID, "code is missing");
	if (buf_add(&code, json_string_value(text), json_string_length(text)) < 0)
		return err_set(reterr, CORDON_LIMIT, "the code is too long");
	if (str_eq(x->c->guest, "python") && code.len)
		dedent(&code);
	if (x->c->is_typescript && code.len)
		r = typescript_strip(NULL, &code, reterr);
	if (r == 0)
		r = run_counted(x, buf_text(&code), code.len, json_object_get(j, "env_vars"),
				reterr);
	return r;
}

static int read_text(const json_t *j, const char *key, const char **ret,
		     struct cordon_error **reterr)
{
	const json_t *v = json_object_get(j, key);

	return !v || json_is_null(v) ? 0 : json_get_string(j, "", key, ret, reterr);
}

void e2b_execute(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *j = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *b = e2b_target(arg, x);
	struct execution run = { .b = b, .x = x };
	const char *id = NULL, *language = NULL;

	if (!b)
		return;
	int r = e2b_read_json(x, &j, &e);
	if (r == 0)
		r = read_text(j, "context_id", &id, &e);
	if (r == 0)
		r = read_text(j, "language", &language, &e);
	if (r == 0 && id && language)
		r = err_set(&e, CORDON_INVALID, "give a context or a language, not both");
	if (r == 0)
		r = e2b_context_get(b, id, language, &run.c, &e);
	if (r == 0) {
		httpd_watch(x, on_left, &run);
		r = execute(&run, j, &e);
		httpd_unwatch(x);
		e2b_context_put(b, run.c);
	}
	if (r < 0)
		e2b_fail_error(x, e);
}
