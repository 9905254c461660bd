/* serve/opening.h - from a client's parameters to the options of a session or a pool. */
#pragma once

#include <cordon/session.h>

#include "base/str.h"
#include "serve/rpc.h"

struct opening {
	struct cordon_session_options options; /* points into the rest */
	struct cordon_policy *policy;
	struct cordon_tools *tools;
	struct strlist env;
};

/* Reads guest, level, policy, set, tools, env, workspace, directory, cold, audit. guest: where none
 * is named.
 */
int opening_read(struct request *q, const char *guest, struct opening *ret,
		 struct cordon_error **reterr);
void opening_done(struct opening *o);
#define cleanup_opening CLEANUP(opening_done)

/* Remembers how the seat was opened, so that it can be again. */
void opening_remember(struct seat *seat, const json_t *params, const char *guest);
/* The policy that level, policy and set describe, over the server's own. */
int opening_policy(const struct rpc *c, const json_t *params, struct cordon_policy **ret,
		   struct cordon_error **reterr);
