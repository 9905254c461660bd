/* wall/wall.h - what a session needs of any wall, independent of the operating system.
 *
 * A wall runs untrusted code in a box: it starts the box, interrupts it, ends it, and reports what
 * the host itself measured. wall/linux is one wall; others can be added beside it. wall.c chooses.
 *
 * A box belongs to one thread at a time. As long as it is not freed, other threads may call
 * box_has_ended, box_end, box_interrupt, box_signal, box_pid, box_look, box_cpu_us and
 * box_assurance. Any thread may call box_join, box_first and box_terminal with a place that is
 * ready, also several at once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "policy/policy.h"
#include "wall/attack_table.h"
#include "wall/launch.h"

struct wall;

/* What this machine can enforce with a wall. Found by trying. */
struct wall_probe {
	bool has_namespaces; /* a box has its own files, processes and network */
	bool has_groups;     /* the kernel accounts and limits a box as a whole */
};

/* What a box is made from: the policy, the launch, and its streams. */
struct box_options {
	const struct policy *policy;
	const struct launch *launch;
	int stdin_fd, stdout_fd, stderr_fd, wire_fd; /* borrowed; -1: closed in the guest */
	uint32_t layers_off;                         /* `doctor --prove` only */
	bool on_terminal; /* box_join: stdin is a terminal of box_terminal, and the guest's own */
	/* The box is a place: it does not end with its guest, and others can join (box_join). */
	bool stays;
	/* Of a place: launches of guests that may join. Its root has their files too. */
	const struct launch *const *also;
	size_t also_count;
};

/* What the host passes to a template to fork a session. The caller may set the last two, which stay
 * its own: the gateway's relay socket (launch.has_gateway), and the bytes of the session's own file
 * (launch.own_file). */
enum { BOX_FORK_RELAY = 5, BOX_FORK_OWN_FILE, BOX_FORK_FDS };
struct box_fork_fds {
	int fds[BOX_FORK_FDS]; /* to be passed, in this order; -1: none */
	unsigned owned;        /* how many of the first ones box_fork_fds_done closes */
};

enum box_stage { BOX_BUILDING, BOX_RUNNING, BOX_EXITED, BOX_FAILED };

/* What is known about a box without asking the kernel. */
struct box_state {
	enum box_stage stage;
	int wait_status;            /* BOX_EXITED: the guest's, as from wait(2) */
	uint64_t cpu_us;            /* of processes that have ended */
	uint64_t memory_peak_bytes; /* measured by the wall itself; 0: not measured */
	uint32_t processes_peak;    /* likewise */
	bool is_out_of_memory;      /* the wall killed it for using too much memory */
	bool is_stuck;    /* killed, but a process waits in the kernel and has not ended */
	bool is_nonotify; /* the filter has no listener: refused calls are not reported */
	bool has_denials; /* calls were refused and reported */
	bool has_groups;  /* box_counts are the kernel's; otherwise they are 0 */
};

/* The kernel's counters. Reading them costs a few system calls. */
struct box_counts {
	uint64_t oom_kills, pids_refused;
	uint64_t memory_peak_bytes; /* 0: unknown */
};

enum box_cpu {
	BOX_CPU_GUEST,   /* the guest's process alone: one system call */
	BOX_CPU_COUNTED, /* everything, if the kernel accounts that; else 0 */
	BOX_CPU_ALL,     /* of everything that runs or ran: may cost several calls per process */
};

/* The highest number at the same time, or the current number; BOX_TASKS_NOW counts threads too,
 * where the kernel accounts a box as a whole. */
enum box_processes { BOX_PROCESSES_PEAK, BOX_PROCESSES_NOW, BOX_TASKS_NOW };

/* One counter per reported refusal, and one for refusals that did not fit the list. */
enum { BOX_DENIAL_COUNTS = 41 };

/* One sandbox. The wall's own state follows this struct. */
struct box {
	const struct wall *wall;
	int control_fd;   /* readable (EOF) when the sandbox is gone; for poll(2) */
	int end_fd;       /* readable when a forked session is dead; -1: none */
	int workspace_fd; /* O_PATH; -1: not received yet */
	uid_t uid;        /* host uid that owns the guest's files */
	gid_t gid;
	const char *private_dir; /* without namespaces: the directory that the guest writes to; else
				    NULL */
};

/* Both ends of a terminal; non-blocking for the host. The caller closes them. */
struct box_terminal {
	int host_fd, guest_fd;
};

/* The operations. The functions below describe them. */
struct wall {
	const char *name; /* in `assurance` and `cordon doctor` */

	void (*probe)(struct wall_probe *ret, json_t *report);
	bool (*can_fork)(const struct policy *p);
	uid_t (*worker_uid)(void);

	int (*start)(const struct box_options *o, struct box **ret, struct cordon_error **reterr);
	int (*prepare)(const struct policy *p, struct box *template, struct box **ret,
		       struct box_fork_fds *ret_fds, struct cordon_error **reterr);
	int (*join)(struct box *place, const struct box_options *o, struct box **ret,
		    struct cordon_error **reterr);
	int (*ask_socket)(struct box *b, int *ret_fd, struct cordon_error **reterr);
	int (*take_socket)(int from);
	int (*terminal)(const struct box *place, struct box_terminal *ret,
			struct cordon_error **reterr);
	int (*wait_ready)(struct box *b, deadline_ns deadline, struct cordon_error **reterr);
	bool (*wait_gone)(struct box *b, deadline_ns deadline);
	bool (*is_gone)(struct box *b);
	bool (*has_ended)(const struct box *b);
	bool (*is_stopped)(const struct box *b);
	int (*interrupt)(struct box *b, deadline_ns deadline);
	int (*signal)(struct box *b, int signo);
	void (*end)(struct box *b);
	void (*kill)(struct box *b);
	void (*release)(struct box *b);
	void (*free)(struct box *b);

	pid_t (*pid)(const struct box *b);
	pid_t (*inner_pid)(const struct box *b);
	int (*freeze)(struct box *b, bool frozen);
	void (*find_guest)(struct box *b);
	struct box_state (*look)(const struct box *b);
	void (*count)(const struct box *b, struct box_counts *ret);
	uint64_t (*cpu_us)(struct box *b, enum box_cpu of);
	uint64_t (*processes)(struct box *b, enum box_processes which, uint64_t enough);
	void (*usage)(struct box *b, uint64_t *ret_cpu_us, uint64_t *ret_peak_bytes);
	int (*failure)(const struct box *b, struct cordon_error **reterr);
	json_t *(*assurance)(const struct box *b, const struct policy *p);
	void (*count_denials)(const struct box *b, uint32_t ret[static BOX_DENIAL_COUNTS]);
	json_t *(*denials)(const struct box *b, const uint32_t *before);
	bool (*saw_exec)(const struct box *b, const uint32_t *before);

	/* The attacks for `cordon doctor --prove`. */
	struct wall_attacks (*attacks)(void);
};

/* The wall of a policy. NULL: the default. */
const struct wall *wall_choose(const struct policy *p);
/* Finds out what the machine can enforce. report, if not NULL, gets what `cordon doctor` shows. */
void wall_probe(const struct policy *p, struct wall_probe *ret, json_t *report);
/* Whether templates can fork sessions of this policy here. */
bool wall_can_fork(const struct policy *p);
/* The uid for processes beside a box, such as the gateway: never root's if root starts it. Our own
 * if we cannot switch to another. */
uid_t wall_worker_uid(void);
/* The socket that box_ask_socket asked for, non-blocking. It was checked: it is of another network
 * namespace than ours. -EAGAIN: not there yet; another negative errno: there is none. */
int wall_take_socket(int from);

/* Returns while the sandbox is being set up. Fails early if a layer that the policy requires is
 * missing. */
int box_start(const struct box_options *o, struct box **ret, struct cordon_error **reterr);
/* A box whose processes a template will fork. The template's box must outlive it. */
int box_prepare(const struct policy *p, struct box *template, struct box **ret,
		struct box_fork_fds *ret_fds, struct cordon_error **reterr);
void box_fork_fds_done(struct box_fork_fds *s);

/* Starts a further guest in a place (box_options.stays) that is ready. The box that it returns is
 * that guest's: its control_fd reaches end of file when the guest has ended; box_interrupt, box_end
 * and box_kill act on the guest and what it started; box_look, box_failure, box_denials and
 * box_assurance are its own. Counters and peaks are the place's. Returns while the guest is being
 * started (box_wait_ready). All guests of a place are one trust domain. At most BOX_GUESTS at a
 * time. The place must outlive the box and ends its guest too. Of the options, `stays` and `also`
 * are not used; the policy is the place's. */
enum { BOX_GUESTS = 64 };
int box_join(struct box *place, const struct box_options *o, struct box **ret,
	     struct cordon_error **reterr);
/* The same for the guest that the place was started with; once. */
int box_first(struct box *place, struct box **ret, struct cordon_error **reterr);
/* Makes a terminal in a place that is ready. */
static inline int box_terminal(const struct box *place, struct box_terminal *ret,
			       struct cordon_error **reterr)
{
	return place->wall->terminal(place, ret, reterr);
}
struct box *box_free(struct box *b);
DEFINE_FREEP(struct box *, box_free)
#define cleanup_box CLEANUP(box_freep)

/* Asks for a TCP socket that is in the box's network namespace and not connected. Never waits:
 * *ret_fd becomes readable when there is an answer, for wall_take_socket. Any thread may call it,
 * as long as the box is not freed. CORDON_STATE: the box has ended. CORDON_UNSUPPORTED: it has no
 * loopback (launch.has_network). */
static inline int box_ask_socket(struct box *b, int *ret_fd, struct cordon_error **reterr)
{
	return b->wall->ask_socket(b, ret_fd, reterr);
}

/* Waits until the root is ready and the workspace's descriptor has arrived, or returns what
 * failed. */
static inline int box_wait_ready(struct box *b, deadline_ns deadline, struct cordon_error **reterr)
{
	return b->wall->wait_ready(b, deadline, reterr);
}

/* Waits for the end, at most until the deadline. True: the sandbox is gone. */
static inline bool box_wait_gone(struct box *b, deadline_ns deadline)
{
	return b->wall->wait_gone(b, deadline);
}

/* Handles messages of the box. True: the sandbox is gone. */
static inline bool box_is_gone(struct box *b)
{
	return b->wall->is_gone(b);
}

/* The same for any thread, once the box is ready; handles no messages. */
static inline bool box_has_ended(const struct box *b)
{
	return b->wall->has_ended(b);
}

/* Whether one of its processes was stopped (SIGSTOP): then it neither answers nor ends. */
static inline bool box_is_stopped(const struct box *b)
{
	return b->wall->is_stopped(b);
}

/* Interrupts the guest (SIGINT). When this returns, the signal was sent, so the guest gets later
 * messages after it. Negative: not confirmed before the deadline. */
static inline int box_interrupt(struct box *b, deadline_ns deadline)
{
	return b->wall->interrupt(b, deadline);
}

/* Sends a signal to the process group of a guest of a place. Does not wait. Negative: it is gone or
 * has too many orders. */
static inline int box_signal(struct box *b, int signo)
{
	return b->wall->signal(b, signo);
}

/* Starts ending the sandbox; does not wait. */
static inline void box_end(struct box *b)
{
	b->wall->end(b);
}

/* Ends everything in the sandbox and waits for that. */
static inline void box_kill(struct box *b)
{
	b->wall->kill(b);
}

/* The host has read the counters: the wall may clean up when the box is gone. */
static inline void box_release(struct box *b)
{
	b->wall->release(b);
}

/* Its first process as the host sees it; 0: unknown. Also after its end, so nothing to signal. */
static inline pid_t box_pid(const struct box *b)
{
	return b->wall->pid(b);
}

/* The guest's process as the code in the sandbox sees it; 0: unknown or gone. */
static inline pid_t box_inner_pid(const struct box *b)
{
	return b->wall->inner_pid(b);
}

/* Stops all processes of the sandbox but pid 1, or lets them go on. Negative: it is gone, or new
 * ones appeared all the time; then some may run. */
static inline int box_freeze(struct box *b, bool frozen)
{
	return b->wall->freeze(b, frozen);
}

/* Looks up the guest's process, which BOX_CPU_GUEST needs, before other threads use the box. */
static inline void box_find_guest(struct box *b)
{
	b->wall->find_guest(b);
}

static inline struct box_state box_look(const struct box *b)
{
	return b->wall->look(b);
}

static inline void box_count(const struct box *b, struct box_counts *ret)
{
	b->wall->count(b, ret);
}

/* CPU time so far, in microseconds; 0: unknown. */
static inline uint64_t box_cpu_us(struct box *b, enum box_cpu of)
{
	return b->wall->cpu_us(b, of);
}

/* How many processes, including the first one; 0: unknown. BOX_PROCESSES_NOW may stop counting
 * at `enough`. */
static inline uint64_t box_processes(struct box *b, enum box_processes which, uint64_t enough)
{
	return b->wall->processes(b, which, enough);
}

/* CPU time of ended processes, and peak memory. */
static inline void box_usage(struct box *b, uint64_t *ret_cpu_us, uint64_t *ret_peak_bytes)
{
	b->wall->usage(b, ret_cpu_us, ret_peak_bytes);
}

/* What failed during set-up; 0: nothing. */
static inline int box_failure(const struct box *b, struct cordon_error **reterr)
{
	return b->wall->failure(b, reterr);
}

/* The layers that were verified (docs/result.md); a new reference. */
static inline json_t *box_assurance(const struct box *b, const struct policy *p)
{
	return b->wall->assurance(b, p);
}

static inline void box_count_denials(const struct box *b, uint32_t ret[static BOX_DENIAL_COUNTS])
{
	b->wall->count_denials(b, ret);
}

/* Refusals since `before` was taken (NULL: all). A new array. */
static inline json_t *box_denials(const struct box *b, const uint32_t *before)
{
	return b->wall->denials(b, before);
}

/* Whether the guest tried to start a program since then that the wall could not identify. */
static inline bool box_saw_exec(const struct box *b, const uint32_t *before)
{
	return b->wall->saw_exec(b, before);
}
