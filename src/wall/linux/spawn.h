/* wall/linux/spawn.h - starts cordon-init from a host process of any size and with any number of
 * threads. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

enum { SPAWN_FDS = 9 };

struct spawn {
	int program_fd;          /* executed by descriptor, so no path can be swapped */
	const char *const *argv; /* ends with NULL */
	/* Descriptors for the child: fds[i] becomes i; -1: closed. */
	int fds[SPAWN_FDS];
	bool empties_bounding; /* drop all capabilities from the bounding set; only root can, and
				  only now (without namespaces) */
	uid_t uid;             /* to switch to before exec, if we are root */
	bool adds_pid;         /* use `uid` plus the child's pid */
	gid_t gid;
	int cgroup_fd; /* v2 directory to clone the child into; -1: none */
};

/* The child shares our memory until it calls exec, and we wait until then. So the cost does not
 * depend on the host's memory. On success the caller owns *ret_pidfd. */
int spawn_start(const struct spawn *s, pid_t *ret_pid, int *ret_pidfd,
		struct cordon_error **reterr);
