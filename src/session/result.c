/* session/result.c - see result.h. */
#include "session/result.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/str.h"

struct cordon_result *result_new(void)
{
	struct cordon_result *r = mem_alloc(sizeof(*r));

	if (!r)
		return NULL;
	buf_init(&r->json, SIZE_MAX / 2);
	r->buffer_fd = -1;
	return r;
}

struct cordon_result *cordon_result_free(struct cordon_result *r)
{
	if (!r)
		return NULL;
	free(r->value_json);
	free(r->buffer_json);
	close_fdp(&r->buffer_fd);
	free(r->text);
	buf_done(&r->out);
	buf_done(&r->err);
	free(r->error);
	free(r->exception_name);
	free(r->exception_message);
	free(r->traceback);
	json_decref(r->outputs);
	json_decref(r->denials);
	json_decref(r->warnings);
	json_decref(r->losses);
	free(r->restart_reason);
	free(r->assurance);
	buf_done(&r->json);
	free(r);
	return NULL;
}

static bool copy_string(char **to, const char *from)
{
	return !from || (*to = str_dup(from));
}

static bool copy_bytes(struct buf *to, const struct buf *from)
{
	buf_init(to, from->max);
	return from->len == 0 || buf_add(to, from->data, from->len) == 0;
}

static bool copy_file(int *to, int from)
{
	return from < 0 || (*to = fcntl(from, F_DUPFD_CLOEXEC, 0)) >= 0;
}

static bool copy_json(json_t **to, const json_t *from)
{
	return !from || (*to = json_deep_copy(from));
}

static bool copy_texts(struct cordon_result *n, const struct cordon_result *r)
{
	return copy_string(&n->value_json, r->value_json) && copy_string(&n->text, r->text) &&
	       copy_string(&n->buffer_json, r->buffer_json) && copy_string(&n->error, r->error) &&
	       copy_string(&n->exception_name, r->exception_name) &&
	       copy_string(&n->exception_message, r->exception_message) &&
	       copy_string(&n->traceback, r->traceback) &&
	       copy_string(&n->restart_reason, r->restart_reason) &&
	       copy_string(&n->assurance, r->assurance);
}

struct cordon_result *result_copy(const struct cordon_result *r)
{
	struct cordon_result *n = result_new();

	if (!n)
		return NULL;
	n->success = r->success;
	n->out_truncated = r->out_truncated;
	n->err_truncated = r->err_truncated;
	n->kind = r->kind;
	n->is_claimed = r->is_claimed;
	n->exception_line = r->exception_line;
	n->exit_code = r->exit_code;
	n->time_ms = r->time_ms;
	n->cpu_ms = r->cpu_ms;
	n->memory_mb = r->memory_mb;
	n->start_ms = r->start_ms;
	n->tool_calls = r->tool_calls;
	n->restarted = r->restarted;
	n->buffer_bytes = r->buffer_bytes;
	bool is_whole = copy_file(&n->buffer_fd, r->buffer_fd) && copy_texts(n, r) &&
			copy_bytes(&n->out, &r->out) && copy_bytes(&n->err, &r->err) &&
			copy_json(&n->outputs, r->outputs) && copy_json(&n->denials, r->denials) &&
			copy_json(&n->warnings, r->warnings) && copy_json(&n->losses, r->losses);
	return is_whole ? n : cordon_result_free(n);
}

int result_fail(struct cordon_result *r, const char *kind, const char *fmt, ...)
{
	va_list ap;

	r->success = false;
	if (r->kind)
		return 0;
	r->kind = kind;
	va_start(ap, fmt);
	int n = vasprintf(&r->error, fmt, ap);
	va_end(ap);
	if (n < 0)
		r->error = NULL;
	return n < 0 ? -CORDON_NOMEM : 0;
}

json_t *result_array(json_t **array)
{
	if (!*array)
		*array = json_array();
	return *array;
}

static void sanitize(char **text)
{
	char *clean = *text ? cordon_sanitize(*text, 0) : NULL;

	if (!clean)
		return;
	free(*text);
	*text = clean;
}

void result_sanitize(struct cordon_result *r)
{
	sanitize(&r->error);
	sanitize(&r->exception_message);
	free(r->traceback);
	r->traceback = NULL;
}

int result_warn(struct cordon_result *r, const char *text)
{
	json_t *a = result_array(&r->warnings);

	return a && json_array_append_new(a, json_string(text)) == 0 ? 0 : -CORDON_NOMEM;
}

int result_lose(struct cordon_result *r, const char *text)
{
	json_t *a = result_array(&r->losses);
	int warned = result_warn(r, text);

	return a && json_array_append_new(a, json_string(text)) == 0 ? warned : -CORDON_NOMEM;
}

void result_explain_restart(struct cordon_result *r, const char *why)
{
	if (!r->restart_reason)
		r->restart_reason = str_dup(why);
}

void result_restarted(struct cordon_result *r, const char *why)
{
	r->restarted = true;
	result_explain_restart(r, why);
}

static void add_string(struct buf *b, const char *key, const char *text, size_t len)
{
	cleanup_json json_t *j = text ? json_string_lossy(text, len) : json_null();
	size_t json_len = 0;
	cleanup_free char *rendered = json_text(j, &json_len);

	(void)buf_printf(b, ", \"%s\": ", key);
	(void)buf_add_str(b, rendered ? rendered : "null");
}

static void add_array(struct buf *b, const char *key, const json_t *array)
{
	cleanup_free char *text = array ? json_text(array, NULL) : NULL;

	(void)buf_printf(b, ", \"%s\": %s", key, text ? text : "[]");
}

static void add_exception(struct buf *b, const struct cordon_result *r)
{
	(void)buf_add_str(b, ", \"exception\": {\"type\": \"exception\"");
	add_string(b, "name", r->exception_name, strlen(r->exception_name));
	if (r->exception_message)
		add_string(b, "message", r->exception_message, strlen(r->exception_message));
	if (r->traceback)
		add_string(b, "traceback", r->traceback, strlen(r->traceback));
	if (r->exception_line > 0)
		(void)buf_printf(b, ", \"line\": %lld", (long long)r->exception_line);
	(void)buf_add_char(b, '}');
}

static void add_restart(struct buf *b, const struct cordon_result *r)
{
	(void)buf_printf(b, ", \"restarted\": %s", r->restarted ? "true" : "false");
	if (r->restarted && r->restart_reason)
		add_string(b, "restart_reason", r->restart_reason, strlen(r->restart_reason));
}

const char *cordon_result_json(struct cordon_result *r)
{
	struct buf *b = &r->json;

	if (b->len > 0)
		return buf_text(b);
	(void)buf_printf(b, "{\"success\": %s, \"result\": ", r->success ? "true" : "false");
	(void)buf_add_str(b, r->value_json ? r->value_json : "null");
	if (r->buffer_json)
		(void)buf_printf(b, ", \"buffer\": %s", r->buffer_json);
	if (r->text)
		add_string(b, "result_text", r->text, strlen(r->text));
	add_string(b, "stdout", buf_text(&r->out), r->out.len);
	add_string(b, "stderr", buf_text(&r->err), r->err.len);
	add_string(b, "error", r->error, r->error ? strlen(r->error) : 0);
	add_string(b, "error_kind", r->kind, r->kind ? strlen(r->kind) : 0);
	if (r->is_claimed)
		(void)buf_add_str(b, ", \"claimed\": true");
	if (r->exception_name)
		add_exception(b, r);
	(void)buf_printf(
		b,
		", \"exit_code\": %d, \"execution_time_ms\": %.3f, \"cpu_time_ms\": %.3f, "
		"\"memory_used_mb\": %.2f, \"truncated\": {\"stdout\": %s, \"stderr\": %s}",
		r->exit_code, r->time_ms, r->cpu_ms, r->memory_mb,
		r->out_truncated ? "true" : "false", r->err_truncated ? "true" : "false");
	if (r->start_ms > 0)
		(void)buf_printf(b, ", \"start_ms\": %.3f", r->start_ms);
	add_array(b, "outputs", r->outputs);
	(void)buf_printf(b, ", \"tool_calls\": %llu", (unsigned long long)r->tool_calls);
	add_array(b, "denials", r->denials);
	add_array(b, "warnings", r->warnings);
	add_restart(b, r);
	(void)buf_add_str(b, ", \"assurance\": ");
	(void)buf_add_str(b, r->assurance ? r->assurance : "null");
	(void)buf_add_char(b, '}');
	return buf_text(b);
}

bool cordon_result_success(const struct cordon_result *r)
{
	return r->success;
}

bool cordon_result_truncated(const struct cordon_result *r, int stream)
{
	return stream == 2 ? r->err_truncated : r->out_truncated;
}

const char *cordon_result_value_json(struct cordon_result *r)
{
	return r->value_json ? r->value_json : "null";
}

int cordon_result_buffer(const struct cordon_result *r, uint64_t *ret_bytes)
{
	if (ret_bytes)
		*ret_bytes = r->buffer_bytes;
	return r->buffer_fd;
}

const char *cordon_result_value_text(const struct cordon_result *r)
{
	return r->text;
}

const char *cordon_result_stdout(const struct cordon_result *r, size_t *ret_len)
{
	if (ret_len)
		*ret_len = r->out.len;
	return buf_text(&r->out);
}

const char *cordon_result_stderr(const struct cordon_result *r, size_t *ret_len)
{
	if (ret_len)
		*ret_len = r->err.len;
	return buf_text(&r->err);
}

const char *cordon_result_error(const struct cordon_result *r)
{
	return r->error;
}

const char *cordon_result_error_kind(const struct cordon_result *r)
{
	return r->kind;
}

int cordon_result_exit_status(const struct cordon_result *r)
{
	static const struct {
		const char *kind;
		int status;
	} table[] = { { "timeout", 124 }, { "cpu", 137 },       { "memory", 137 },
		      { "denied", 126 },  { "cancelled", 125 }, { "protocol", 125 },
		      { "internal", 125 } };

	if (r->success)
		return r->exit_code;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (str_eq(table[i].kind, r->kind))
			return table[i].status;
	return r->exit_code ? r->exit_code : 1;
}

const char *cordon_result_traceback(const struct cordon_result *r)
{
	return r->traceback;
}

/* Texts for people may be shown on a terminal, so control characters in names that the code chose
 * are escaped. */
enum { TEXT_BYTES = 65536 };

static char *lines_of(const json_t *list)
{
	struct buf b;
	size_t i;
	json_t *w;

	buf_init(&b, TEXT_BYTES);
	json_array_foreach(list, i, w)
	{
		(void)buf_add_str(&b, "warning: ");
		(void)buf_add_printable(&b, json_string_value(w));
		(void)buf_add_str(&b, "\n");
	}
	return b.len ? buf_take(&b) : str_dup("");
}

char *cordon_result_warnings_text(const struct cordon_result *r)
{
	return lines_of(r->warnings);
}

char *cordon_result_restart_text(const struct cordon_result *r)
{
	const char *why = r->restart_reason ? r->restart_reason : "the guest was replaced";

	return r->restarted ? str_printf("variables and processes of the session are gone, its "
					 "files are kept: %s",
					 why)
			    : str_dup("");
}

char *cordon_result_losses_text(const struct cordon_result *r)
{
	return lines_of(r->losses);
}

char *cordon_result_denials_text(const struct cordon_result *r)
{
	struct buf b;
	size_t i;
	json_t *d;

	buf_init(&b, TEXT_BYTES);
	json_array_foreach(r->denials, i, d)
	{
		const char *op = json_string_value(json_object_get(d, "operation"));
		const char *target = json_string_value(json_object_get(d, "target"));
		const char *layer = json_string_value(json_object_get(d, "layer"));
		const char *remedy = json_string_value(json_object_get(d, "remedy"));

		(void)buf_printf(&b, "denied: %s%s", op ? op : "?", target ? " " : "");
		(void)buf_add_printable(&b, target ? target : "");
		(void)buf_printf(&b, " (%s); to allow it: %s\n", layer ? layer : "?",
				 remedy ? remedy : "none");
	}
	return b.len ? buf_take(&b) : str_dup("");
}
