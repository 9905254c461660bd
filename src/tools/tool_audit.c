/* tools/tool_audit.c - see tool_audit.h. */
#include "tools/tool_audit.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "tools/registry.h"

/* A command is called with the environment of the code. The log has no use for it, and it may hold
 * what should not be written down. NULL: there is none. */
static char *args_without_env(const struct cordon_call *c)
{
	cleanup_json json_t *args = NULL;

	if (!c->tool->command || json_parse(c->args, c->args_len, 0, &args, NULL) < 0 ||
	    json_object_del(args, "env") < 0)
		return NULL;
	return json_text(args, NULL);
}

static void add_args(struct audit_event *e, const struct cordon_call *c)
{
	cleanup_free char *without = args_without_env(c);
	const char *args = without ? without : c->args;
	size_t len = without ? strlen(without) : c->args_len;

	if (len <= AUDIT_CODE_CHARS)
		audit_add_json(e, "args", args, len);
	else
		audit_add_text_cut(e, "args", args, len, AUDIT_CODE_CHARS);
}

static struct audit_event *begin(struct audit *a, const char *event, const struct cordon_call *c)
{
	struct audit_event *e = audit_begin(a, event, c->session);

	audit_add_text(e, "tool", c->tool->name, strlen(c->tool->name));
	audit_add_uint(e, "call", c->number);
	return e;
}

int tool_audit_call(struct audit *a, const struct cordon_call *c, struct cordon_error **reterr)
{
	struct audit_event *e = begin(a, "tool_call", c);

	add_args(e, c);
	return audit_commit(e, reterr);
}

int tool_audit_result(struct audit *a, const struct cordon_call *c, bool is_error, const char *text,
		      size_t len, struct cordon_error **reterr)
{
	struct audit_event *e = begin(a, "tool_result", c);

	audit_add_text_cut(e, is_error ? "error" : "result_summary", text, len, AUDIT_RESULT_CHARS);
	if (c->started_ns)
		audit_add_seconds(e, "elapsed_secs", clock_now_ns() - c->started_ns);
	return audit_commit(e, reterr);
}

/* The same fields as every other denial (docs/result.md). The tool is registered, so its name needs
 * no escaping. */
static void add_denial(struct audit_event *e, const char *tool, const char *rule)
{
	char denial[400];

	(void)snprintf(denial, sizeof(denial),
		       "{\"operation\":\"tool\",\"target\":\"%s\",\"layer\":\"tools\","
		       "\"rule\":\"%s\",\"count\":1}",
		       tool, rule);
	audit_add_json(e, "denial", denial, strlen(denial));
}

int tool_audit_refusal(struct audit *a, const char *session, const char *tool, const char *cause,
		       const char *message, struct cordon_error **reterr)
{
	bool is_denied = str_eq(cause, "tools") || str_eq(cause, "approval");
	struct audit_event *e =
		audit_begin(a, is_denied ? "capability.denied" : "tool_refused", session);

	if (is_denied) {
		add_denial(e, tool, cause);
	} else {
		audit_add_text_cut(e, "tool", tool, strlen(tool), AUDIT_RESULT_CHARS);
		audit_add_text(e, "cause", cause, strlen(cause));
	}
	audit_add_text_cut(e, "error", message, strlen(message), AUDIT_RESULT_CHARS);
	return audit_commit(e, reterr);
}

int tool_audit_approval(struct audit *a, const struct cordon_call *c, struct cordon_error **reterr)
{
	struct audit_event *e = begin(a, "approval_requested", c);

	add_args(e, c);
	return audit_commit(e, reterr);
}

int tool_audit_decision(struct audit *a, const struct cordon_call *c, const char *decision,
			const char *reason, struct cordon_error **reterr)
{
	struct audit_event *e = begin(a, "approval_resolved", c);

	audit_add_text(e, "decision", decision, strlen(decision));
	if (reason)
		audit_add_text_cut(e, "reason", reason, strlen(reason), AUDIT_RESULT_CHARS);
	return audit_commit(e, reterr);
}
