/* wall/init/guest.h - starting the guest's interpreter behind the finished wall. */
#pragma once

#include <sys/types.h>

#include "wall/init/plan.h"

struct guest {
	pid_t pid;
	int report; /* socket to it, until it runs */
};

/* Forks the process that becomes the guest; it makes its network namespace and waits. 0, or -1 with
 * the failure recorded, as below. */
int guest_fork(struct job *j, struct guest *ret);
/* The root stands: enters the guest's network and cgroup namespaces and lets it seal itself. */
int guest_admit(struct job *j, struct guest *g);
/* The calling process joins the control groups of v1. As late as can be: what the kernel makes for
 * it before that is not counted piece by piece in groups that are new. */
int guest_join_cgroups(struct job *j);
/* Lets the sealed process become the interpreter. Returns its notification descriptor or -1. */
int guest_release(struct guest *g);
