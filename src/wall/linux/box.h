/* wall/linux/box.h - one sandbox: its supervisor, its workspace, its control groups, its status
 * page.
 *
 * A box belongs to one thread at a time. Other threads, while its owner keeps it, may call
 * box_has_ended, box_end, box_interrupt, box_pid, box_cgroup, box_status and box_assurance. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "policy/policy.h"
#include "wall/launch.h"
#include "wall/linux/cgroup.h"
#include "wall/linux/format.h"
#include "wall/linux/machine.h"

struct box;

struct box_options {
	const struct policy *policy;
	const struct launch *launch;
	int stdin_fd, stdout_fd, stderr_fd, wire_fd; /* borrowed; -1: closed in the guest */
	uint32_t layers_off;                         /* `doctor --prove` only */
};

/* Starts the supervisor and returns while it sets the sandbox up. Fails first if a layer that the
 * policy requires is missing. */
int box_start(const struct box_options *o, struct box **ret, struct cordon_error **reterr);
/* Whether sandboxes of this policy have namespaces here. They do, unless the policy requires none
 * and the machine has none. */
bool box_has_namespaces(const struct policy *p);
/* Waits until the root is set up and the workspace descriptor has arrived, or says what failed. */
int box_wait_ready(struct box *b, deadline_ns deadline, struct cordon_error **reterr);

/* What the host hands to a template so that it forks a session; the session's half of a box. */
struct box_fork_fds {
	int control_fd, status_fd;           /* to be passed; closed by box_fork_fds_done */
	int cgroup_fds[MACHINE_CONTROLLERS]; /* borrowed from the box; -1: none */
};
/* A box whose processes a template will fork; the template's box outlives it. */
int box_prepare(const struct policy *p, struct box *template, struct box **ret,
		struct box_fork_fds *ret_fds, struct cordon_error **reterr);
void box_fork_fds_done(struct box_fork_fds *s);

/* Orders its end, and does not wait. */
void box_end(struct box *b);
/* Ends everything in it, now, and waits for that. */
void box_kill(struct box *b);
/* The private directory that the guest uses without namespaces; NULL: there are namespaces. */
const char *box_private_dir(const struct box *b);
/* It was killed, but a process still waits in the kernel, for a mount that does not answer. */
bool box_is_stuck(const struct box *b);
/* The host has read the counters: when the box is gone, its supervisor may clean up. */
void box_release(struct box *b);
struct box *box_free(struct box *b);
/* Sends SIGINT to the guest. When this returns, pid 1 has sent it, so the guest gets later messages
 * after the signal. Negative: it may not have been sent in time. */
int box_interrupt(struct box *b, deadline_ns deadline);

/* Readable (EOF) when the sandbox is gone; for poll(2). */
int box_control_fd(const struct box *b);
/* Readable when a session that a template forked is dead, even if another process still holds its
 * end of the control socket. -1: this box has no such descriptor. */
int box_end_fd(const struct box *b);
/* Handles what came on the control socket. True: the sandbox is gone. */
bool box_is_gone(struct box *b);
/* The same for any thread, once the box is ready; handles nothing. */
bool box_has_ended(const struct box *b);
/* Waits at most that long for the end. True when it is gone. */
bool box_wait_gone(struct box *b, deadline_ns deadline);

int box_workspace_fd(const struct box *b); /* O_PATH; -1 before it came */
uid_t box_uid(const struct box *b);
gid_t box_gid(const struct box *b);
pid_t box_pid(const struct box *b); /* pid 1 of the sandbox as the host sees it; 0: unknown */
/* The guest's process as the host sees it; 0: unknown or gone. */
pid_t box_guest_pid(struct box *b);
/* Its supervisor, pid 1 and the guest, as far as they are known; 0: not, or there is none. */
void box_pids(const struct box *b, pid_t ret[static 3]);
const struct status *box_status(const struct box *b);
/* Whether the supervisor killed it for memory, which it does if no control group limits it. */
bool box_is_out_of_memory(const struct box *b);
/* SHA-256 of the system call filters that its guest was sealed with. */
void box_filter_hash(const struct box *b, uint8_t ret[static 32]);
const struct cgroup *box_cgroup(const struct box *b);
const struct machine *box_machine(const struct box *b);

/* What failed during set-up, in words; 0 if nothing did. */
int box_failure(const struct box *b, struct cordon_error **reterr);
/* CPU time and peak memory so far. */
void box_usage(struct box *b, uint64_t *ret_cpu_us, uint64_t *ret_peak_bytes);
/* The layers that were verified (docs/result.md); a new reference. */
json_t *box_assurance(const struct box *b, const struct policy *p);
/* What this machine's wall lacks, in sentences; a new array. */
json_t *box_lacks(const struct machine *m);
/* How often each refusal was seen, and the rest that is only counted. */
enum { BOX_DENIAL_COUNTS = STATUS_DENIALS + 1 };
void box_count_denials(const struct box *b, uint32_t ret[static BOX_DENIAL_COUNTS]);
/* Refusals since `before` was taken (NULL: all). A new array. */
json_t *box_denials(const struct box *b, const uint32_t *before);
/* Whether the guest tried to start a program since then that pid 1 could not name. */
bool box_saw_exec(const struct box *b, const uint32_t *before);

DEFINE_FREEP(struct box *, box_free)
#define cleanup_box CLEANUP(box_freep)
