/* session/session_command.h - runs one command line in a context of its own (context.h). */
#pragma once

#include "cordon/command.h"
#include "session/session.h"

/* A context for this command. Checks the options and the session's languages. */
int session_command_context(struct cordon_session *s, const struct cordon_command_options *o,
			    struct cordon_session **ret, struct cordon_error **reterr);
/* Runs it, holding the context. stdin_fd > 0: piped in instead of the options' bytes. The caller
 * closes the context afterwards. */
int session_command_run(struct cordon_session *c, const struct cordon_command_options *o,
			int stdin_fd, struct cordon_result **ret, struct cordon_error **reterr);
