/* serve/rpc/reply.c - see reply.h. */
#include "serve/rpc/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

void reply_result(struct lineout *out, const json_t *id, const char *result, size_t len, int fd,
		  uint64_t bytes)
{
	cleanup_free char *text = json_text(id, NULL);
	static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":", mid[] = ",\"result\":";
	char attached[64] = "";

	if (bytes > 0)
		(void)snprintf(attached, sizeof(attached), ",\"attachment\":%" PRIu64, bytes);
	const struct line_part parts[] = { { head, sizeof(head) - 1 },
					   { text ? text : "null", text ? strlen(text) : 4 },
					   { attached, strlen(attached) },
					   { mid, sizeof(mid) - 1 },
					   { len ? result : "null", len ? len : 4 },
					   { "}", 1 } };

	(void)lineout_send_file(out, parts, 6, fd, bytes);
}

static void send_error(struct lineout *out, const json_t *id, json_t *error)
{
	cleanup_json json_t *message = json_object();

	json_object_set_new(message, "jsonrpc", json_string("2.0"));
	json_object_set_new(message, "id", id ? json_deep_copy(id) : json_null());
	json_object_set_new(message, "error", error);
	size_t len = 0;
	cleanup_free char *text = json_text(message, &len);
	const struct line_part part = { text, len };
	if (text)
		(void)lineout_send(out, &part, 1);
}

void reply_error(struct lineout *out, const json_t *id, int code, const char *message)
{
	json_t *error = json_object();

	json_object_set_new(error, "code", json_integer(code));
	json_object_set_new(error, "message", json_string_lossy(message, strlen(message)));
	send_error(out, id, error);
}

void reply_unread(struct lineout *out, uint64_t line, int code, const char *message)
{
	json_t *error = json_object(), *data = json_object();

	json_object_set_new(error, "code", json_integer(code));
	json_object_set_new(error, "message", json_string_lossy(message, strlen(message)));
	json_object_set_new(data, "line", json_integer((json_int_t)line));
	json_object_set_new(error, "data", data);
	send_error(out, NULL, error);
}

/* "ENOENT", or NULL. */
static const char *errno_name(int os_errno)
{
	return os_errno > 0 ? strerrorname_np(os_errno) : NULL;
}

static int find_errno(const struct cordon_error *e)
{
	int n = 0;

	for (; e && n == 0; e = cordon_error_cause(e))
		n = cordon_error_errno(e);
	return n;
}

/* Whether the text begins with the name of a system's error: what the workspace says of files. */
static bool is_named(const char *text)
{
	size_t len =
		text && text[0] == 'E' ? strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") : 0;

	return len > 1 && str_starts(text + len, ": ");
}

void reply_failure(struct lineout *out, const json_t *id, const struct cordon_error *e,
		   bool is_pod_style)
{
	enum cordon_code code = e ? cordon_error_code(e) : CORDON_NOMEM;
	cleanup_free char *text = err_text(e);
	const char *name = errno_name(find_errno(e));
	bool is_pod_error = is_pod_style && (name || is_named(text)) && code != CORDON_NOMEM;
	cleanup_free char *full = is_pod_error && text && !is_named(text)
					  ? str_printf("%s: %s", name, text)
					  : str_dup(text);
	json_t *error = json_object(), *data = json_object();

	json_object_set_new(error, "code", json_integer(is_pod_error ? 1 : cordon_code_rpc(code)));
	json_object_set_new(error, "message",
			    full ? json_string_lossy(full, strlen(full)) : json_string("failed"));
	json_object_set_new(data, "code", json_string(cordon_code_name(code)));
	if (name)
		json_object_set_new(data, "errno", json_string(name));
	json_object_set_new(error, "data", data);
	send_error(out, id, error);
}
