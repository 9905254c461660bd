/* wall/linux/supervisor.h - starts cordon-init as the supervisor of a sandbox. It then waits for
 * its plan. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "wall/linux/format.h"

/* Of the file that cordon-init is started from (F_SEAL_*): SEAL, SHRINK, GROW, WRITE. */
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
	int pidfd, control; /* the caller's, as are the others */
	int plan;           /* the socket that it waits at */
	struct status *status;
	bool is_prestarted; /* it was started before (prestart.h), and gets fds with the plan */
};

/* Until the plan comes, it sets up what is the same in every sandbox. */
int supervisor_start(const struct supervisor_options *o, struct supervisor *ret,
		     struct cordon_error **reterr);
/* A status page, mapped, and its descriptor. */
int supervisor_make_status(struct status **ret, int *ret_fd, struct cordon_error **reterr);
