/* inside/init/guest_start.h - starts the guest's interpreter once the sandbox is complete. */
#pragma once

#include <sys/types.h>

#include "inside/init/plan.h"

struct guest {
	pid_t pid;
	int report; /* socket to it, until it runs */
};

/* Forks the process that becomes the guest; it makes its network namespace and waits. 0, or -1 with
 * the failure recorded, as below. */
int guest_fork(struct job *j, struct guest *ret);
/* The root is complete: enters the guest's network and cgroup namespaces and lets it seal
 * itself. */
int guest_admit(struct job *j, struct guest *g);
/* Makes the calling process join the v1 control groups. As late as possible: in a new group the
 * kernel charges every object individually. */
int guest_join_cgroups(struct job *j);
/* Pid 1 of a place, which is complete and without privileges: forks a further guest, which seals
 * itself, sends its notification descriptor on *ret_report and starts its program. fds: its
 * streams and wire; -1: none. Returns its pid, or 0 with the failure recorded. */
pid_t guest_join(struct job *j, const int fds[static INIT_FD_CONTROL], int *ret_report);
/* Lets the sealed process start the interpreter. Returns its notification descriptor or -1. */
int guest_release(struct guest *g);
