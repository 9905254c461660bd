/* wall/linux/linux_box.h - the inside of a Linux box: its supervisor, its control groups, its
 * status page; and the operations on it (linux_wall.c lists them, wall/wall.h describes them). */
#pragma once

#include <pthread.h>

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
	int ptmx_fd;      /* of its devpts, O_PATH; -1: it has none, or it is a guest of a place */
	struct status *status;
	enum launch_filter filter; /* the system call filter of its guest */
	bool has_network;
	pid_t guest_pid;            /* looked up once */
	pthread_mutex_t counting;   /* guards the next two: any thread may ask for the CPU time */
	pid_t shell_pid;            /* the guest's only child, when there was no other process */
	uint64_t ended_us;          /* CPU time of what had ended then (processes.c) */
	bool is_ready, is_answered; /* its root is ready; pid 1 has sent the last interrupt */
	_Atomic bool is_gone;
	pthread_mutex_t releasing;  /* held while control_fd is closed, or used by another thread
				       than the box's (linux_box_ask_socket) */
	_Atomic bool is_stuck;      /* killed but not dead: it waits in the kernel */
	bool is_forked;             /* from a template */
	struct slots slots;         /* of a template: control groups of closed sessions */
	struct linux_box *template; /* must outlive this box; NULL: none */
	uint32_t require;           /* the policy's */
	bool stays;                 /* a place: guests can join; or a template of places */
	bool is_template;
	_Atomic unsigned guests;          /* of a place: boxes of its guests */
	_Atomic bool has_first;           /* of a place: the first guest has a box of its own */
	struct linux_box *place;          /* of a guest: must outlive this box; NULL: none */
	char private_dir[NO_USERNS_PATH]; /* without namespaces; the supervisor removes it */
};

static inline struct linux_box *linux_box(const struct box *b)
{
	return (struct linux_box *)b;
}

/* The place of a guest that joined, else the box itself: whose groups and counters they are. */
static inline const struct linux_box *linux_box_whole(const struct linux_box *b)
{
	return b->place ? b->place : b;
}

/* An empty box; NULL: out of memory. */
struct linux_box *linux_box_new(void);
struct linux_box *linux_box_drop(struct linux_box *b);
DEFINE_FREEP(struct linux_box *, linux_box_drop)
#define cleanup_linux_box CLEANUP(linux_box_dropp)

/* In linux_box_start.c. */
int linux_box_start(const struct box_options *o, struct box **ret, struct cordon_error **reterr);
int linux_box_prepare(const struct policy *p, struct box *from, struct box **ret,
		      struct box_fork_fds *ret_fds, struct cordon_error **reterr);
bool linux_box_can_fork(const struct policy *p);
/* In linux_box_join.c. */
int linux_box_join(struct box *place, const struct box_options *o, struct box **ret,
		   struct cordon_error **reterr);
/* In linux_box_socket.c. */
int linux_box_ask_socket(struct box *box, int *ret_fd, struct cordon_error **reterr);
int linux_box_take_socket(int from);

/* In linux_box_terminal.c. */
int linux_box_terminal(const struct box *place, struct box_terminal *ret,
		       struct cordon_error **reterr);

int linux_box_wait_ready(struct box *box, deadline_ns deadline, struct cordon_error **reterr);
bool linux_box_wait_gone(struct box *box, deadline_ns deadline);
bool linux_box_is_gone(struct box *box);
bool linux_box_has_ended(const struct box *box);
int linux_box_interrupt(struct box *box, deadline_ns deadline);
int linux_box_signal(struct box *box, int signo);
void linux_box_end(struct box *box);
void linux_box_kill(struct box *box);
void linux_box_release(struct box *box);
void linux_box_free(struct box *box);
pid_t linux_box_first_pid(const struct box *box);
/* The same, but 0 if it is gone. */
pid_t linux_box_pid(const struct box *box);
void linux_box_find_guest(struct box *box);
struct box_state linux_box_look(const struct box *box);
void linux_box_count(const struct box *box, struct box_counts *ret);
int linux_box_failure(const struct box *box, struct cordon_error **reterr);

/* The guest's process as the host sees it; 0: unknown or gone. */
pid_t linux_box_guest_pid(struct linux_box *b);
const struct status *linux_box_status(const struct box *box);
