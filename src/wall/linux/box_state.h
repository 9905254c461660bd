/* wall/linux/box_state.h - the handle of a sandbox from inside: for box.c and box_start.c only. */
#pragma once

#include "wall/linux/box.h"
#include "wall/linux/no_userns.h"
#include "wall/linux/slots.h"

struct box {
	struct machine machine;
	struct cgroup cgroup;
	pid_t supervisor; /* our child; 0: a template forked this box */
	int pidfd;        /* of the supervisor, or of pid 1 when there is none */
	int control;      /* seqpacket; EOF when the sandbox is gone */
	int workspace;    /* O_PATH root of its tmpfs */
	struct status *status;
	enum launch_filter filter; /* which system call filter its guest has */
	bool has_network;
	uid_t uid; /* its own where root starts it; known when there is a supervisor */
	gid_t gid;
	pid_t guest_pid;            /* looked up once */
	bool is_ready, is_answered; /* its root stands; pid 1 has sent the last interrupt */
	_Atomic bool is_gone;
	_Atomic bool is_stuck; /* killed, and not dead: it waits in the kernel */
	bool is_prestarted;    /* its supervisor was there before it */
	bool is_forked;        /* from a template */
	struct slots slots;    /* a template's: control groups of sessions that are over */
	struct box *template;  /* outlives this box; NULL: none */
	uint32_t require;      /* the policy's */
	char private_dir[NO_USERNS_PATH]; /* on the rung without namespaces; the supervisor removes
					     it */
};
