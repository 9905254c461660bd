/* session/remedy.h - what to change in the policy so that a refused program, library or limit is
 * allowed. A remedy ends with the assignment in parentheses, as --set takes it. */
#pragma once

#include "base/json.h"

#include "session/guest_denial.h"

/* If a file of the workspace or of a mount was to be executed. */
#define REMEDY_EXEC_RULE "files of the workspace and of mounts may not be executed"
#define REMEDY_EXEC                                                                                \
	"workspace_exec: allow files of the workspace to be executed (workspace_exec=true)"

/* The remedy for a command that the policy does not name; the caller frees it. NULL: no memory. */
char *remedy_command(const char *name);

/* The plain name of a program in a directory where `commands` looks; NULL: it is elsewhere. */
const char *remedy_command_of(const char *path);

/* Pid 1 has seen refused programs. Gives each its remedy, and drops those that the host does not
 * have: the policy did not refuse them. */
void remedy_programs(json_t *denials, const struct guest_denial_setting *s);

/* The result failed at a limit: adds which one, and a larger value. `is_out_of_files`: the
 * workspace has no inode left. */
void remedy_limit(const struct policy *p, uint64_t timeout_ms, bool is_out_of_files,
		  struct cordon_result *r);
/* The code met this limit ("processes", "open_files") and went on; only its words tell. */
void remedy_limit_met(const char *kind, const struct policy *p, struct cordon_result *r);
