/* wall/linux/linux_box.h - the inside of a Linux box: its supervisor, its control groups, its
 * status page; and the operations on it (linux_wall.c lists them, wall/wall.h describes them). */
#pragma once

#include "wall/linux/cgroup.h"
#include "wall/linux/format.h"
#include "wall/linux/machine.h"
#include "wall/linux/no_userns.h"
#include "wall/linux/slots.h"
#include "wall/wall.h"

struct linux_box {
	struct box base; /* its control_fd is a SOCK_SEQPACKET socket */
	struct machine machine;
	struct cgroup cgroup;
	pid_t supervisor; /* our child; 0: a template forked this box */
	int pidfd;        /* of the supervisor; of pid 1 if there is none */
	struct status *status;
	enum launch_filter filter; /* the system call filter of its guest */
	bool has_network;
	pid_t guest_pid;            /* looked up once */
	bool is_ready, is_answered; /* its root is ready; pid 1 has sent the last interrupt */
	_Atomic bool is_gone;
	_Atomic bool is_stuck;            /* killed but not dead: it waits in the kernel */
	bool is_forked;                   /* from a template */
	struct slots slots;               /* of a template: control groups of closed sessions */
	struct linux_box *template;       /* must outlive this box; NULL: none */
	uint32_t require;                 /* the policy's */
	char private_dir[NO_USERNS_PATH]; /* without namespaces; the supervisor removes it */
};

static inline struct linux_box *linux_box(const struct box *b)
{
	return (struct linux_box *)b;
}

/* In linux_box_start.c. */
int linux_box_start(const struct box_options *o, struct box **ret, struct cordon_error **reterr);
int linux_box_prepare(const struct policy *p, struct box *from, struct box **ret,
		      struct box_fork_fds *ret_fds, struct cordon_error **reterr);
bool linux_box_can_fork(const struct policy *p);

int linux_box_wait_ready(struct box *box, deadline_ns deadline, struct cordon_error **reterr);
bool linux_box_wait_gone(struct box *box, deadline_ns deadline);
bool linux_box_is_gone(struct box *box);
bool linux_box_has_ended(const struct box *box);
int linux_box_interrupt(struct box *box, deadline_ns deadline);
void linux_box_end(struct box *box);
void linux_box_kill(struct box *box);
void linux_box_release(struct box *box);
void linux_box_free(struct box *box);
pid_t linux_box_pid(const struct box *box);
void linux_box_find_guest(struct box *box);
struct box_state linux_box_look(const struct box *box);
void linux_box_count(const struct box *box, struct box_counts *ret);
int linux_box_failure(const struct box *box, struct cordon_error **reterr);

/* The guest's process as the host sees it; 0: unknown or gone. */
pid_t linux_box_guest_pid(struct linux_box *b);
const struct status *linux_box_status(const struct box *box);
