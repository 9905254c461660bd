/* serve/rpc/open_params.h - turns a client's parameters into options of a session or pool. */
#pragma once

#include <cordon/session.h>

#include "base/str.h"
#include "serve/rpc/rpc.h"

struct open_params {
	struct cordon_session_options options; /* points into the rest */
	struct cordon_policy *policy;
	struct cordon_tools *tools;
	struct strlist env, languages, packages;
};

/* A list of strings among the parameters. */
int open_params_list(const struct request *q, const char *key, struct strlist *ret,
		     struct cordon_error **reterr);

/* Reads guest, level, policy, set, tools, env, workspace, directory, cold, audit, languages,
 * packages. guest: the default. */
int open_params_read(struct request *q, const char *guest, struct open_params *ret,
		     struct cordon_error **reterr);
void open_params_done(struct open_params *o);
/* The memory that a session with these may use, in bytes. */
uint64_t open_params_memory(const struct open_params *o);
#define cleanup_open_params CLEANUP(open_params_done)

/* Remembers how the client session was opened, so that it can be reopened. */
void open_params_remember(struct client_session *cs, const json_t *params, const char *guest);
/* The policy from level, policy and set, based on the server's own. */
int open_params_policy(const struct rpc *c, const json_t *params, struct cordon_policy **ret,
		       struct cordon_error **reterr);
