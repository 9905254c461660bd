/* wall/linux/spawn.h - starts cordon-init from a host of any size, with any number of threads. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

enum { SPAWN_FDS = 9 };

struct spawn {
	int program_fd;          /* executed by descriptor: no path that could be swapped */
	const char *const *argv; /* ends with NULL */
	/* Descriptors the child gets: fds[i] becomes i; -1: closed there. */
	int fds[SPAWN_FDS];
	bool empties_bounding; /* as root, because nobody can later: the rung without namespaces */
	uid_t uid;             /* taken on before exec when we are root */
	bool adds_pid;         /* that and the child's pid */
	gid_t gid;
	int cgroup_fd; /* v2 directory the child is born in; -1: none */
};

/* The child shares our memory until it calls exec, and we wait until then. So the cost does not
 * grow with the host's memory. On success *ret_pidfd is the caller's. */
int spawn_start(const struct spawn *s, pid_t *ret_pid, int *ret_pidfd,
		struct cordon_error **reterr);
