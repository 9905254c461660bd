/* guest/view.h - pieces of the host's /usr that guests share: libraries, data, commands. */
#pragma once

#include "base/error.h"
#include "policy/policy.h"
#include "wall/launch.h"

/* The dynamic loader and the shared libraries; no programs. */
int view_libraries(struct launch *l);
/* Time zones, locales, fonts, certificates' configuration. */
int view_data(struct launch *l);
/* One program: the file itself, at its own path, may be executed. NULL error text: out of memory.
 */
int view_program(struct launch *l, const char *path, struct cordon_error **reterr);
/* The policy's commands by name; "*" is the caller's to handle. */
int view_commands(struct launch *l, const struct policy_list *commands,
		  struct cordon_error **reterr);
/* The environment of every guest, from nothing: the policy's names of the host, then ours. */
int view_environment(struct launch *l, const struct policy *p);
