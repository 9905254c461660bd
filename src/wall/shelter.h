/* wall/shelter.h - the rung without namespaces: a private directory of the host in place of a
 * private root, and a launch that is told in the host's own paths. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "wall/launch.h"
#include "wall/machine.h"

enum {
	SHELTER_PATH = 128,
	/* Before it truncate(2) is nobody's: what the user owns could be emptied. */
	SHELTER_LANDLOCK_ABI = 3,
};

/* Where its parts are below the directory. */
#define SHELTER_WORKSPACE "w"
#define SHELTER_RUNTIME "run/cordon"

/* Whether this machine can give it: what is missing and the remedy. */
int shelter_check(const struct machine *m, struct cordon_error **reterr);
/* An empty directory of that user's alone; its name in ret. */
int shelter_make(uid_t owner, char ret[static SHELTER_PATH], struct cordon_error **reterr);
/* A copy of the launch in which /home/user, /tmp, /workspace and /run/cordon are the directory's.
 * Refuses what only a private root can give. */
int shelter_rewrite(const struct launch *l, const char *dir, struct launch *ret,
		    struct cordon_error **reterr);
/* Processes and threads that the user has now: RLIMIT_NPROC counts them all. */
uint64_t shelter_count_tasks(uid_t user);
