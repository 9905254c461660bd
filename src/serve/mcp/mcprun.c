/* serve/mcp/mcprun.c - MCP tools that run code and commands. */
#include <cordon/cordon.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "serve/mcp/mcptool.h"

enum { TEXT_MAX = 4 << 20 };

static void add_images(struct mcpcall *c, const json_t *full)
{
	size_t i;
	json_t *o;

	json_array_foreach(json_object_get(full, "outputs"), i, o)
	{
		const char *mime = json_string_value(json_object_get(o, "mime"));
		if (!str_starts(mime ? mime : "", "image/") ||
		    !str_eq(json_string_value(json_object_get(o, "encoding")), "base64"))
			continue;
		json_t *part = json_object();
		json_object_set_new(part, "type", json_string("image"));
		json_object_set(part, "data", json_object_get(o, "data"));
		json_object_set(part, "mimeType", json_object_get(o, "mime"));
		json_array_append_new(c->content, part);
	}
}

/* Logs each denial on a line of its own. */
static void log_denials(struct mcpcall *c, const char *denials)
{
	cleanup_free char *copy = str_dup(denials);
	char *at = copy;

	for (char *line; at && (line = strsep(&at, "\n"));)
		if (line[0])
			mcpcall_log(c, "warning", line);
}

static void write_text(struct mcpcall *c, struct cordon_result *result, const json_t *full)
{
	cleanup_free char *denials = cordon_result_denials_text(result);
	const char *value = cordon_result_value_text(result);
	const char *out = json_string_value(json_object_get(full, "stdout"));
	const char *err = json_string_value(json_object_get(full, "stderr"));
	struct buf b;

	buf_init(&b, TEXT_MAX);
	(void)buf_printf(&b, "%s%s", out ? out : "", value ? value : "");
	if (err && err[0])
		(void)buf_printf(&b, "%sstderr:\n%s", b.len ? "\n" : "", err);
	if (!cordon_result_success(result))
		(void)buf_printf(&b, "%s%s: %s\n", b.len ? "\n" : "",
				 cordon_result_error_kind(result), cordon_result_error(result));
	if (denials && denials[0]) {
		(void)buf_printf(&b, "%s%s", b.len ? "\n" : "", denials);
		log_denials(c, denials);
	}
	c->text = b.len ? buf_take(&b) : str_dup("");
	buf_done(&b);
}

static void describe(struct mcpcall *c, struct cordon_result *result, const json_t *full)
{
	static const char *const copied[] = { "success",   "stdout",     "stderr",
					      "error",     "error_kind", "denials",
					      "truncated", "tool_calls", "execution_time_ms" };
	const char *value = cordon_result_value_text(result);

	for (size_t i = 0; i < sizeof(copied) / sizeof(*copied); i++)
		json_object_set(c->structured, copied[i], json_object_get(full, copied[i]));
	json_object_set_new(c->structured, "exit_code",
			    json_integer(cordon_result_exit_status(result)));
	json_object_set_new(c->structured, "result",
			    value ? json_string_lossy(value, strlen(value)) : json_null());
	json_object_set_new(c->structured, "sandbox_id", json_string(c->cs->id));
	write_text(c, result, full);
	add_images(c, full);
}

static void on_output(int stream, const char *bytes, size_t len, void *arg)
{
	(void)stream;
	mcpcall_wrote(arg, bytes, len);
}

/* Runs the code; the caller has begun an execution of the client session and ends it. */
static int run(struct mcpcall *c, const char *code, struct cordon_result **ret,
	       struct cordon_error **reterr)
{
	struct cordon_execute_options o = { .code = code, .output = on_output, .output_arg = c };
	const json_t *timeout = json_object_get(c->args, "timeout_ms");

	/* A cancel that came earlier found no execution to end. */
	if (mcpcall_is_cancelled(c))
		return err_set(reterr, CORDON_CANCELLED, "the call was cancelled");
	int r = client_session_pass(&c->mcp->sessions, c->cs, reterr);
	if (r < 0)
		return r;
	if (json_is_integer(timeout) && json_integer_value(timeout) > 0)
		o.timeout_ms = (uint64_t)json_integer_value(timeout);
	mcpcall_watch(c);
	r = cordon_session_execute(c->cs->session, &o, ret, reterr);
	mcpcall_unwatch(c);
	return r;
}

static bool is_over(void *arg)
{
	return mcpcall_is_cancelled(arg);
}

/* Models call tools in parallel. Calls on the same sandbox take turns. */
static int execute(struct mcpcall *c, const char *code, struct cordon_error **reterr)
{
	struct cordon_result *result = NULL;
	cleanup_json json_t *full = NULL;
	int r = client_session_begin_in_turn(&c->mcp->sessions, c->cs, c->number, is_over, c,
					     reterr);

	if (r < 0)
		return r;
	r = run(c, code, &result, reterr);
	client_session_end(&c->mcp->sessions, c->cs);
	if (r < 0)
		return r;
	const char *json = cordon_result_json(result);
	r = json ? json_parse(json, strlen(json), 0, &full, reterr)
		 : err_set(reterr, CORDON_NOMEM, "out of memory");
	if (r == 0)
		describe(c, result, full);
	c->is_error = !cordon_result_success(result);
	cordon_result_free(result);
	return r;
}

int mcptool_run_code(struct mcpcall *c, struct cordon_error **reterr)
{
	const char *code = NULL, *language = mcpcall_arg(c, "language");
	int r = mcpcall_need(c, "code", &code, reterr);

	if (r == 0)
		r = mcptool_find(c, language ? language : "python", reterr);
	if (r == 0 && language && !str_eq(language, c->cs->guest))
		r = err_set(reterr, CORDON_INVALID, "sandbox '%s' runs %s, not %.20s", c->cs->id,
			    c->cs->guest, language);
	return r < 0 ? r : execute(c, code, reterr);
}

int mcptool_run_command(struct mcpcall *c, struct cordon_error **reterr)
{
	const char *command = NULL, *shell = mcpcall_arg(c, "shell");
	int r = mcpcall_need(c, "command", &command, reterr);

	if (r == 0 && shell && !str_eq(shell, "sh") && !str_eq(shell, "pod"))
		r = err_set(reterr, CORDON_INVALID, "the shell is sh or pod");
	if (r == 0)
		r = mcptool_find(c, shell ? shell : "sh", reterr);
	if (r == 0 && !str_eq(c->cs->guest, "sh") && !str_eq(c->cs->guest, "pod"))
		r = err_set(reterr, CORDON_INVALID, "sandbox '%s' runs %s: use run_code", c->cs->id,
			    c->cs->guest);
	if (r == 0)
		r = execute(c, command, reterr);
	const char *kind = json_string_value(json_object_get(c->structured, "error_kind"));
	/* A command that fails has still run: its status is the answer. */
	if (r == 0 && (!kind || str_eq(kind, "exception")))
		c->is_error = false;
	return r;
}
