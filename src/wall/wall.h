/* wall/wall.h - what a session needs of any wall, and nothing of one operating system. A wall runs
 * untrusted code in a box: it starts the box, interrupts it, ends it, and says what the host itself
 * saw of it. wall/linux is one; others stand beside it. wall.c chooses.
 *
 * A box belongs to one thread at a time. Other threads, while its owner keeps it, may call
 * box_has_ended, box_end, box_interrupt, box_pid, box_look, box_cpu_us and box_assurance. */
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
	bool has_namespaces; /* files, processes and network of its own */
	bool has_groups;     /* the kernel counts and limits a box as a whole */
};

/* The plan of a box: who may do what, what runs, and its streams. */
struct box_options {
	const struct policy *policy;
	const struct launch *launch;
	int stdin_fd, stdout_fd, stderr_fd, wire_fd; /* borrowed; -1: closed in the guest */
	uint32_t layers_off;                         /* `doctor --prove` only */
};

/* What the host hands to a template so that it forks a session; the session's half of a box. */
enum { BOX_FORK_FDS = 5 };
struct box_fork_fds {
	int fds[BOX_FORK_FDS]; /* to be passed, in this order; -1: none */
	unsigned owned;        /* so many of the first are closed by box_fork_fds_done */
};

enum box_stage { BOX_BUILDING, BOX_RUNNING, BOX_EXITED, BOX_FAILED };

/* What is known of a box without asking the kernel. */
struct box_state {
	enum box_stage stage;
	int wait_status;            /* BOX_EXITED: the guest's, as wait(2) gives it */
	uint64_t cpu_us;            /* of processes that have ended */
	uint64_t memory_peak_bytes; /* seen by the wall's own watch; 0: there is none */
	uint32_t processes_peak;    /* likewise */
	bool is_out_of_memory;      /* that watch killed it */
	bool is_stuck;    /* killed, but a process waits in the kernel and has not ended */
	bool is_deaf;     /* nobody listens to the filter: refusals are not told */
	bool has_denials; /* something was refused, and told */
	bool has_groups;  /* box_counts are the kernel's; else they are 0 */
};

/* What the kernel counted; reading it costs a few system calls. */
struct box_counts {
	uint64_t oom_kills, pids_refused;
	uint64_t memory_peak_bytes; /* 0: unknown */
};

enum box_cpu {
	BOX_CPU_GUEST,   /* the guest's process alone: one system call */
	BOX_CPU_COUNTED, /* of everything, if the kernel counts that; else 0 */
	BOX_CPU_ALL,     /* of everything that runs or ran: may cost several calls per process */
};

/* Whose processes: those there were at once, or those there are. */
enum box_processes { BOX_PROCESSES_PEAK, BOX_PROCESSES_NOW };

/* How often each refusal was told, and the rest that is only counted. */
enum { BOX_DENIAL_COUNTS = 41 };

/* One sandbox. A wall's own state follows it. */
struct box {
	const struct wall *wall;
	int control_fd;   /* readable (EOF) when the sandbox is gone; for poll(2) */
	int end_fd;       /* readable when a forked session is dead; -1: there is none */
	int workspace_fd; /* O_PATH; -1 before it came */
	uid_t uid;        /* whose files the guest's are on the host */
	gid_t gid;
	const char *private_dir; /* what the guest writes to, without namespaces; else NULL */
};

/* The operations. The calls below say what each one does. */
struct wall {
	const char *name; /* in `assurance` and `cordon doctor` */

	void (*probe)(struct wall_probe *ret, json_t *report);
	bool (*can_fork)(const struct policy *p);
	uid_t (*worker_uid)(void);
	void (*drop_prestarted)(void);

	int (*start)(const struct box_options *o, struct box **ret, struct cordon_error **reterr);
	int (*prepare)(const struct policy *p, struct box *template, struct box **ret,
		       struct box_fork_fds *ret_fds, struct cordon_error **reterr);
	int (*wait_ready)(struct box *b, deadline_ns deadline, struct cordon_error **reterr);
	bool (*wait_gone)(struct box *b, deadline_ns deadline);
	bool (*is_gone)(struct box *b);
	bool (*has_ended)(const struct box *b);
	bool (*is_stopped)(const struct box *b);
	int (*interrupt)(struct box *b, deadline_ns deadline);
	void (*end)(struct box *b);
	void (*kill)(struct box *b);
	void (*release)(struct box *b);
	void (*free)(struct box *b);

	pid_t (*pid)(const struct box *b);
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

	/* What `cordon doctor --prove` tries against it. */
	struct wall_attacks (*attacks)(void);
};

/* The wall of a policy. NULL: the one that a policy gets if it names none. */
const struct wall *wall_choose(const struct policy *p);
/* Tries what the machine can enforce. If report is not NULL, it gets what `cordon doctor` shows. */
void wall_probe(const struct policy *p, struct wall_probe *ret, json_t *report);
/* Whether templates can fork sessions of this policy here. */
bool wall_can_fork(const struct policy *p);
/* The uid of what works beside a box, such as the gateway: never root's if root starts it. Our own
 * if we cannot become another. */
uid_t wall_worker_uid(void);
/* Ends what was started before there was a policy, if no box took it over, and waits for that. */
void wall_drop_prestarted(void);

/* Returns while the sandbox is being set up. Fails first if a layer that the policy requires is
 * missing. */
int box_start(const struct box_options *o, struct box **ret, struct cordon_error **reterr);
/* A box whose processes a template will fork; the template's box outlives it. */
int box_prepare(const struct policy *p, struct box *template, struct box **ret,
		struct box_fork_fds *ret_fds, struct cordon_error **reterr);
void box_fork_fds_done(struct box_fork_fds *s);
struct box *box_free(struct box *b);
DEFINE_FREEP(struct box *, box_free)
#define cleanup_box CLEANUP(box_freep)

/* Waits until the root is set up and the workspace descriptor has arrived, or says what failed. */
static inline int box_wait_ready(struct box *b, deadline_ns deadline, struct cordon_error **reterr)
{
	return b->wall->wait_ready(b, deadline, reterr);
}

/* Waits at most that long for the end. True when it is gone. */
static inline bool box_wait_gone(struct box *b, deadline_ns deadline)
{
	return b->wall->wait_gone(b, deadline);
}

/* Handles what came from the box. True: the sandbox is gone. */
static inline bool box_is_gone(struct box *b)
{
	return b->wall->is_gone(b);
}

/* The same for any thread, once the box is ready; handles nothing. */
static inline bool box_has_ended(const struct box *b)
{
	return b->wall->has_ended(b);
}

/* Whether one of its processes was stopped (SIGSTOP): it neither answers nor ends then. */
static inline bool box_is_stopped(const struct box *b)
{
	return b->wall->is_stopped(b);
}

/* Interrupts the guest (SIGINT). When this returns, it was sent, so the guest gets later messages
 * after it. Negative: it may not have been sent in time. */
static inline int box_interrupt(struct box *b, deadline_ns deadline)
{
	return b->wall->interrupt(b, deadline);
}

/* Orders its end, and does not wait. */
static inline void box_end(struct box *b)
{
	b->wall->end(b);
}

/* Ends everything in it, now, and waits for that. */
static inline void box_kill(struct box *b)
{
	b->wall->kill(b);
}

/* The host has read the counters: when the box is gone, the wall may clean up. */
static inline void box_release(struct box *b)
{
	b->wall->release(b);
}

/* Its first process as the host sees it; 0: unknown or gone. */
static inline pid_t box_pid(const struct box *b)
{
	return b->wall->pid(b);
}

/* Looks the guest's process up, which BOX_CPU_GUEST needs, before other threads use the box. */
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

/* How many processes, its first one among them; 0: unknown. BOX_PROCESSES_NOW stops counting at
 * `enough`; the kernel's BOX_PROCESSES_PEAK ignores it. */
static inline uint64_t box_processes(struct box *b, enum box_processes which, uint64_t enough)
{
	return b->wall->processes(b, which, enough);
}

/* CPU time of what has ended, and peak memory. */
static inline void box_usage(struct box *b, uint64_t *ret_cpu_us, uint64_t *ret_peak_bytes)
{
	b->wall->usage(b, ret_cpu_us, ret_peak_bytes);
}

/* What failed during set-up, in words; 0 if nothing did. */
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

/* Whether the guest tried to start a program since then that the wall could not name. */
static inline bool box_saw_exec(const struct box *b, const uint32_t *before)
{
	return b->wall->saw_exec(b, before);
}
