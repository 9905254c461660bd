/* wall/linux/no_userns.h - the sandbox without user namespaces: a private directory of the host
 * instead of a private root, and a launch with the host's own paths. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "wall/launch.h"
#include "wall/linux/machine.h"

enum {
	NO_USERNS_PATH = 128,
	/* Earlier versions do not cover truncate(2), so the code could empty the user's files. */
	NO_USERNS_LANDLOCK_ABI = 3,
};

/* Paths of its parts below the directory. */
#define NO_USERNS_WORKSPACE "w"
#define NO_USERNS_RUNTIME "run/cordon"

/* Whether this machine can provide it; the error says what is missing and the remedy. */
int no_userns_check(const struct machine *m, struct cordon_error **reterr);
/* Makes an empty directory that only this user can enter; ret: its path. */
int no_userns_make(uid_t owner, char ret[static NO_USERNS_PATH], struct cordon_error **reterr);
/* A copy of the launch in which /home/user, /tmp, /workspace and /run/cordon are in the directory.
 * Refuses what needs a private root. */
int no_userns_rewrite(const struct launch *l, const char *dir, struct launch *ret,
		      struct cordon_error **reterr);
/* The user's current processes and threads: RLIMIT_NPROC counts them all. */
uint64_t no_userns_count_tasks(uid_t user);
