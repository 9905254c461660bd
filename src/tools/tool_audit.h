/* tools/tool_audit.h - audit events of tool calls. */
#pragma once

#include <stdbool.h>

#include "audit/audit.h"
#include "tools/call.h"

/* Without an audit log, all of these do nothing. A negative return is that of audit_commit. */
int tool_audit_call(struct audit *a, const struct cordon_call *c, struct cordon_error **reterr);
int tool_audit_result(struct audit *a, const struct cordon_call *c, bool is_error, const char *text,
		      size_t len, struct cordon_error **reterr);
/* A call that was never run. cause: "unknown", "arguments" or "budget"; or, for a denial, its rule:
 * "tools" (the policy's list) or "approval" (no one to ask). */
int tool_audit_refusal(struct audit *a, const char *session, const char *tool, const char *cause,
		       const char *message, struct cordon_error **reterr);
int tool_audit_approval(struct audit *a, const struct cordon_call *c, struct cordon_error **reterr);
/* decision: "allow", "deny", "replace" or "timeout". */
int tool_audit_decision(struct audit *a, const struct cordon_call *c, const char *decision,
			const char *reason, struct cordon_error **reterr);
