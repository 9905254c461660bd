/* wall/linux/supervisor.h - starts cordon-init as the supervisor of a sandbox, which then waits for
 * its plan. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "wall/linux/format.h"

/* Seals (F_SEAL_*) of the file that cordon-init is started from: SEAL, SHRINK, GROW, WRITE. */
enum { SUPERVISOR_SEALS = 1 | 2 | 4 | 8 };

struct supervisor_options {
	uint32_t flags; /* of PLANF_EARLY */
	uid_t uid;
	bool adds_pid; /* its uid is `uid` plus its own pid (machine.h) */
	gid_t gid;
	bool empties_bounding;
	int fds[4];   /* the guest's stdin, stdout, stderr and wire; -1: none */
	int group_fd; /* PLANF_BORN_IN_GROUP: the sandbox's group, and the supervisor's */
	int own_group_fd;
};

struct supervisor {
	pid_t pid;
	uid_t uid;
	int pidfd, control; /* owned by the caller, as are the others */
	int plan;           /* the socket on which it waits */
	struct status *status;
};

/* Until the plan arrives, it sets up what all sandboxes have in common. */
int supervisor_start(const struct supervisor_options *o, struct supervisor *ret,
		     struct cordon_error **reterr);
/* A status page, mapped, and its descriptor. */
int supervisor_make_status(struct status **ret, int *ret_fd, struct cordon_error **reterr);
