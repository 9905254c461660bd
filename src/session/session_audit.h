/* session/session_audit.h - audit events of a session and its executions. */
#pragma once

#include "session/result.h"
#include "session/session.h"

/* Events of a command have the id of the session that it belongs to; a context has one of its own.
 */
const char *session_audit_id(const struct cordon_session *s);
/* Opens the session's audit log. A log that cannot be written is an error only if the policy
 * requires one. */
int session_audit_begin(struct cordon_session *s, const struct cordon_session_options *o,
			struct cordon_error **reterr);
/* event: session_start (with policy and assurance), session_restart, session_close; of a context
 * context_open, session_restart, context_close, with the session that it belongs to. */
int session_audit_session(struct cordon_session *s, const char *event,
			  struct cordon_error **reterr);
int session_audit_code(struct cordon_session *s, const struct cordon_execute_options *o,
		       struct cordon_error **reterr);
/* Records how the execution ended, and each denial with its cause. */
int session_audit_result(struct cordon_session *s, const struct cordon_execute_options *o,
			 const struct cordon_result *r, struct cordon_error **reterr);
/* Adds a warning to the result for lines that could not be written, if the policy does not require
 * them. */
void session_audit_losses(struct cordon_session *s, struct cordon_result *r);
