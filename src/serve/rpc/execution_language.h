/* serve/rpc/execution_language.h - the language of an execution, for metrics and lists. */
#pragma once

#include "serve/rpc/client_session.h"

/* The language that the request's parameters name, or that of the session or pool, or, without one,
 * that of the session that it opens. */
const char *execution_language_find(struct client_sessions *all, const struct client_session *cs,
				    const json_t *params);
