/* guest/view.h - parts of the host's /usr that guests share: libraries, data, commands. */
#pragma once

#include "base/error.h"
#include "policy/policy.h"
#include "wall/launch.h"

/* The dynamic loader and the shared libraries; no programs. */
int view_libraries(struct launch *l);
/* Time zones, locales, fonts, configuration of certificates. */
int view_data(struct launch *l);
/* Whether the sandbox has files of its own at this path of the host, which hide the host's. */
bool view_hides(const char *path);
/* One program: this file may be executed at its own path, which must not be hidden. */
int view_program(struct launch *l, const char *path, struct cordon_error **reterr);
/* All of /usr, where every program may be executed. Call it first: what it shows is not bound
 * again. */
int view_all(struct launch *l);
/* The policy's commands by name. The caller handles "*". */
int view_commands(struct launch *l, const struct policy_list *commands,
		  struct cordon_error **reterr);
/* The programs that Python, R and Node may start: all, or those that are named. */
int view_programs(struct launch *l, const struct policy *p, struct cordon_error **reterr);
/* Whether the host has a program of this plain name for view_commands. */
bool view_has_command(const char *name);
/* The environment of every guest, built from scratch: the variables of env_pass, then ours. */
int view_environment(struct launch *l, const struct policy *p);
