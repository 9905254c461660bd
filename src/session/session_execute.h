/* session/session_execute.h - an execution as its session sees it: the checks before it, the guest
 * that runs it, its record in the audit log, and what follows from its end. */
#pragma once

#include "session/result.h"
#include "session/session.h"

/* Checks before anything runs, in the order that users rely on. */
int session_refuse(struct cordon_session *s, const struct cordon_execute_options *o,
		   struct cordon_error **reterr);
/* Makes sure that there is a guest that accepts code. *ret_why: why the last one had to be
 * replaced. *ret_start_ms: how long starting one took; 0: none was started. */
int session_have_guest(struct cordon_session *s, const char **ret_why, char **ret_lost,
		       double *ret_start_ms, struct cordon_error **reterr);
/* One execution on the session's engine, recorded in the audit log. On failure there is no result.
 * *ret_alive: the engine can be used again. The caller holds the session. */
int session_run_recorded(struct cordon_session *s, const struct cordon_execute_options *o,
			 struct cordon_result **ret, bool *ret_alive, struct cordon_error **reterr);
/* An execution counts from its beginning, so that executions at the same time do not exceed
 * max_executions together. The end says whether it counts in the end. */
int session_count_begin(struct cordon_session *s, struct cordon_error **reterr);
void session_count_end(struct cordon_session *s, bool counts);
/* Whether a shell must run the code in an agent. Without one, bash alone runs it, which is quicker.
 */
bool session_needs_agent(const struct cordon_session *s, const struct cordon_execute_options *o);
