/* guest/view.h - parts of the host's /usr that guests share: libraries, data, commands. */
#pragma once

#include "base/error.h"
#include "policy/policy.h"
#include "wall/launch.h"

/* The dynamic loader and the shared libraries; no programs. */
int view_libraries(struct launch *l);
/* Time zones, locales, fonts, configuration of certificates. */
int view_data(struct launch *l);
/* One program: this file may be executed at its own path. Error without text: out of memory. */
int view_program(struct launch *l, const char *path, struct cordon_error **reterr);
/* The policy's commands by name. The caller handles "*". */
int view_commands(struct launch *l, const struct policy_list *commands,
		  struct cordon_error **reterr);
/* The environment of every guest, built from scratch: the variables of env_pass, then ours. */
int view_environment(struct launch *l, const struct policy *p);
