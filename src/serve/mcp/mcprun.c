/* serve/mcp/mcprun.c - MCP tools that run code and commands. */
#include <cordon/cordon.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "policy/public.h"
#include "serve/mcp/mcplang.h"
#include "serve/mcp/mcptext.h"
#include "serve/mcp/mcptool.h"
#include "serve/rpc/session_quota.h"
#include "serve/typescript.h"

enum { CODE_MAX = MCP_MESSAGE_MAX };

static void on_output(int stream, const char *bytes, size_t len, void *arg)
{
	(void)stream;
	mcpcall_wrote(arg, bytes, len);
}

/* A model chooses the time, but the policy is the most it gets. */
static uint64_t within_policy(const struct mcpcall *c, uint64_t timeout_ms)
{
	const struct cordon_policy *most = c->mcp->options.policy;

	return most && timeout_ms > most->p.timeout_ms ? most->p.timeout_ms : timeout_ms;
}

/* Runs the code; the caller has begun an execution of the client session and ends it. */
static int run(struct mcpcall *c, struct client_session *context, const char *code,
	       struct cordon_result **ret, struct cordon_error **reterr)
{
	struct cordon_execute_options o = {
		.code = code, .output = on_output, .output_arg = c, .show_values = true
	};
	const json_t *timeout = json_object_get(c->args, "timeout_ms");

	/* A cancel that came earlier found no execution to end. */
	if (mcpcall_is_cancelled(c))
		return err_set(reterr, CORDON_CANCELLED, "the call was cancelled");
	int r = client_session_pass(&c->mcp->sessions, context, reterr);
	if (r < 0)
		return r;
	if (json_is_integer(timeout) && json_integer_value(timeout) > 0)
		o.timeout_ms = within_policy(c, (uint64_t)json_integer_value(timeout));
	mcpcall_watch(c);
	r = cordon_session_execute(context->session, &o, ret, reterr);
	mcpcall_unwatch(c);
	return r;
}

static int run_in_turn(struct mcpcall *c, const char *guest, const char *code,
		       struct cordon_result **ret, struct cordon_error **reterr)
{
	struct client_session *context = NULL;
	int r = mcptool_begin(c, guest, &context, reterr);

	if (r < 0)
		return r;
	r = session_quota_begin(c->mcp->sessions.quota, reterr);
	if (r == 0) {
		r = run(c, context, code, ret, reterr);
		session_quota_end(c->mcp->sessions.quota);
	}
	mcptool_end(c, context);
	return r;
}

/* guest: the language; NULL: the sandbox's own. */
static int execute(struct mcpcall *c, const char *guest, const char *code,
		   struct cordon_error **reterr)
{
	struct cordon_result *result = NULL;
	cleanup_json json_t *full = NULL;
	struct span span;

	span_begin(&span, &(struct span_options){ .tracer = c->mcp->options.tracer,
						  .parent = &c->span->self,
						  .name = "execute" });
	int r = run_in_turn(c, guest, code, &result, reterr);
	const char *json = r == 0 ? cordon_result_json(result) : NULL;
	const char *kind = r == 0 ? cordon_result_error_kind(result)
				  : cordon_code_name((enum cordon_code) - r);
	span_set_outcome(&span,
			 guest   ? guest
			 : c->cs ? c->cs->guest
				 : NULL,
			 kind ? kind : "success", span.tracer ? span_cpu_ms(json) : -1);
	span_end(&span);
	if (r < 0)
		return r;
	r = json ? json_parse(json, strlen(json), 0, &full, reterr)
		 : err_set(reterr, CORDON_NOMEM, "out of memory");
	if (r == 0)
		mcptext_describe(c, result, full);
	c->is_error = !cordon_result_success(result);
	cordon_result_free(result);
	return r;
}

/* Node strips the types, in a sandbox of its own. */
static int execute_typescript(struct mcpcall *c, const char *code, struct cordon_error **reterr)
{
	cleanup_buf struct buf b = { 0 };
	int r;

	buf_init(&b, CODE_MAX);
	r = buf_add_str(&b, code);
	if (r == 0)
		r = typescript_strip(c->mcp->options.policy, &b, reterr);
	else
		r = err_set(reterr, CORDON_NOMEM, "out of memory");
	return r < 0 ? r : execute(c, "node", buf_text(&b), reterr);
}

/* The language that the call names; otherwise that of a sandbox which was made for one; otherwise
 * Python. */
static int find_language(struct mcpcall *c, struct mcplang *ret, struct cordon_error **reterr)
{
	const char *name = mcpcall_arg(c, "language");
	int r = name ? mcplang_find(name, ret, reterr) : 0;

	if (r == 0)
		r = mcptool_find(c, name ? ret->guest : "python", reterr);
	if (r == 0 && !name && !(c->cs->has_contexts && str_eq(c->cs->guest, "sh")))
		ret->guest = c->cs->guest;
	else if (r == 0 && !name)
		ret->guest = "python";
	if (r == 0 && name && !c->cs->has_contexts && !str_eq(ret->guest, c->cs->guest))
		r = err_set(reterr, CORDON_INVALID, "sandbox '%s' runs %s, not %s", c->cs->id,
			    c->cs->guest, ret->guest);
	return r;
}

int mcptool_run_code(struct mcpcall *c, struct cordon_error **reterr)
{
	struct mcplang language = { 0 };
	const char *code = NULL;
	int r = mcpcall_need(c, "code", &code, reterr);

	if (r == 0)
		r = find_language(c, &language, reterr);
	if (r < 0)
		return r;
	return language.is_typescript ? execute_typescript(c, code, reterr)
				      : execute(c, language.guest, code, reterr);
}

/* The sandbox that runs the command, and the language: NULL if it has just the shell. */
static int find_shell(struct mcpcall *c, const char **ret, struct cordon_error **reterr)
{
	const char *shell = mcpcall_arg(c, "shell");

	if (shell && !str_eq(shell, "sh") && !str_eq(shell, "pod"))
		return err_set(reterr, CORDON_INVALID, "the shell is sh or pod");
	int r = mcptool_find(c, shell ? shell : "sh", reterr);
	if (r < 0)
		return r;
	*ret = c->cs->has_contexts ? "sh" : NULL;
	if (*ret || str_eq(c->cs->guest, "sh") || str_eq(c->cs->guest, "pod"))
		return 0;
	return err_set(reterr, CORDON_INVALID, "sandbox '%s' runs %s: use run_code", c->cs->id,
		       c->cs->guest);
}

int mcptool_run_command(struct mcpcall *c, struct cordon_error **reterr)
{
	const char *command = NULL, *guest = NULL;
	int r = mcpcall_need(c, "command", &command, reterr);

	if (r == 0)
		r = find_shell(c, &guest, reterr);
	if (r == 0)
		r = execute(c, guest, command, reterr);
	const char *kind = json_string_value(json_object_get(c->structured, "error_kind"));
	/* A command that fails has still run: its status is the answer. */
	if (r == 0 && (!kind || str_eq(kind, "exception")))
		c->is_error = false;
	return r;
}
