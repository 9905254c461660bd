/* inside/lib/fork.c - libguest: makes a session from a warm interpreter. Loaded by Python through
 * ctypes and by R through dyn.load; depends on neither.
 *
 *   template T ── clone3(VM|VFORK, new namespaces) ──> C0: maps, mounts, cgroups; then
 *                                                      fork ──> C1: seals itself, returns to T's
 *                                                               caller as the session (pid 2)
 *                                                      exec cordon-init reap: pid 1
 *
 * C0 shares T's memory while T waits, so the interpreter's page tables are copied only once, by the
 * fork of C1. C1 restores T's registers with longjmp; its memory is a copy of T's. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside/init/identity.h"
#include "inside/init/reaper.h"
#include "inside/init/root.h"
#include "inside/init/seal.h"
#include "inside/init/terminals.h"
#include "wall/linux/clone.h"
#include "wall/linux/kernel.h"

/* The order of the descriptors in a spawn request (docs/wire.md). */
enum {
	FD_WIRE,
	FD_IN,
	FD_OUT,
	FD_ERR,
	FD_CONTROL,
	FD_STATUS,
	FD_CGROUP,
	FD_RELAY = FD_CGROUP + 3,
	FD_OWN_FILE,
	FD_COUNT
};
enum { STACK_BYTES = 256 * 1024 };

struct request {
	struct job job;
	const int *fds;
	jmp_buf back;
	char *stack;
};

/* The session: returns to the caller of the template's runtime, for which only time has passed. */
_Noreturn static void session_main(struct request *q, int report)
{
	struct job *j = &q->job;
	int listener = -1;

	plan_mark(j, MARK_FORKED);
	setsid();
	/* The same path, but now a workspace is mounted there. */
	if (chdir(plan_text(j, j->plan->cwd)) != 0) {
		plan_fail(j, STAGE_DIRECTORY, 0, errno);
		_exit(1);
	}
	(void)prctl(PR_SET_DUMPABLE, 0);
	/* The namespaces are read before the filter, which would leave only a slow way; nothing
	 * changes them after that. */
	if (seal_rlimits(j) < 0 || seal_capabilities(j) < 0 || seal_landlock(j) < 0 ||
	    seal_prove_namespaces(j) < 0 || seal_seccomp(j, FILTER_FINAL, &listener) < 0)
		_exit(1);
	plan_mark(j, MARK_FILTERED);
	int status =
		reaper_send(report, 'L', &listener, listener >= 0) < 0 ? -1 : seal_open_status(j);
	if (status < 0 || seal_open_files(j) < 0 || seal_prove_process(j, status) < 0)
		_exit(1);
	plan_mark(j, MARK_SEALED);
	j->status->state = STATE_RUNNING;
	/* Unmaps what belongs to the supervisor. */
	munmap(j->status, sizeof(struct status));
	munmap((void *)(uintptr_t)j->plan, j->plan->size);
	close(report);
	close(listener);
	close(INIT_FD_PLAN);
	close(INIT_FD_SELF);
	if (j->locks_fd > 0)
		close(j->locks_fd);
	for (int i = FD_CONTROL; i < FD_COUNT; i++)
		close(q->fds[i]);
	_longjmp(q->back, 1);
}

/* The descriptors are closed with the others, when the session and its reaper are there. */
static int build_network(struct request *q)
{
	struct job *j = &q->job;
	const char *own_file = plan_text(j, j->plan->own_file);

	if ((j->flags & PLANF_LOOPBACK) && identity_open_relay(j, q->fds[FD_RELAY]) < 0)
		return -1;
	plan_mark(j, MARK_NETWORK);
	return own_file[0] ? root_own_file(j, own_file, q->fds[FD_OWN_FILE]) : 0;
}

static int build(struct request *q)
{
	struct job *j = &q->job;
	int out[2] = { -1, -1 };

	plan_mark(j, MARK_SPACES);
	if (!j->plan->cgroup_v2 &&
	    identity_join_cgroups(j, q->fds + FD_CGROUP, j->plan->cgroup_count) < 0)
		return -1;
	plan_mark(j, MARK_GROUPS);
	if (unshare(CLONE_NEWCGROUP) != 0)
		return plan_fail(j, STAGE_NAMESPACES, 1, errno);
	if (identity_map(j, INSIDE_ID, INSIDE_ID) < 0 || identity_hostname(j) < 0)
		return -1;
	plan_mark(j, MARK_MAPPED);
	if (build_network(q) < 0)
		return -1;
	const char *files = j->plan->flags & PLANF_PROC_FILES ? "/" PROC_FILES_DIR : NULL;
	j->is_session = true;
	if (root_workspace(j, plan_text(j, j->plan->workspace_data), &out[0]) < 0 ||
	    root_proc(j, "/proc", files) < 0 || terminals_mount(j, "/dev", q->fds[FD_CONTROL]) < 0)
		return -1;
	out[1] = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (out[1] < 0)
		return plan_fail(j, STAGE_FORK, 3, errno);
	if (reaper_send(q->fds[FD_CONTROL], CONTROL_WORKSPACE, out, 2) < 0)
		return plan_fail(j, STAGE_WORKSPACE, 9, errno);
	close(out[0]);
	close(out[1]);
	plan_mark(j, MARK_ROOT);
	return 0;
}

/* C0 becomes cordon-init, with its descriptors at their numbers. It does so at once, so that T
 * continues while C1 seals itself and then sends the filter's listener. */
_Noreturn static void become_reaper(struct request *q, pid_t guest, int report)
{
	char number[16];
	char *const argv[] = { "cordon-init", "reap", number, NULL };
	char *const none[] = { NULL };
	/* Moved away first: a source may have the number of another's destination. */
	int control = fcntl(q->fds[FD_CONTROL], F_DUPFD_CLOEXEC, INIT_FD_END);
	int status = fcntl(q->fds[FD_STATUS], F_DUPFD_CLOEXEC, INIT_FD_END);

	report = fcntl(report, F_DUPFD_CLOEXEC, INIT_FD_END);
	snprintf(number, sizeof(number), "%d", guest);
	if (dup2(control, INIT_FD_CONTROL) >= 0 && dup2(status, INIT_FD_STATUS) >= 0 &&
	    dup2(report, INIT_FD_CGROUP) >= 0) {
		if (q->job.locks_fd <= 0 || dup2(q->job.locks_fd, INIT_FD_CGROUP + 1) < 0)
			close(INIT_FD_CGROUP + 1); /* then locks are refused sooner */
		syscall(SYS_close_range, 0, INIT_FD_CONTROL - 1, 0);
		syscall(SYS_close_range, INIT_FD_CGROUP + 2, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */);
		if ((q->job.flags & PLANF_STAYS) && seal_privileges(&q->job) < 0)
			_exit(1);
		syscall(SYS_execveat, INIT_FD_SELF, "", argv, none, AT_EMPTY_PATH);
	}
	plan_fail(&q->job, STAGE_EXEC, 2, errno);
	_exit(1);
}

/* C0: pid 1 of the session's namespaces, on a separate stack in T's memory. */
static int first_process(void *arg)
{
	struct request *q = arg;
	int pair[2];

	/* T ignores SIGCHLD. A reaper that did so would miss its guest's end, which may come before
	 * C0 has become the reaper. */
	(void)signal(SIGCHLD, SIG_DFL);
	if (build(q) < 0)
		_exit(1);
	/* Guests that join are children of the reaper, which can no longer do this. */
	if ((q->job.flags & PLANF_STAYS) && seal_bounding(&q->job) < 0)
		_exit(1);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
		plan_fail(&q->job, STAGE_FORK, 0, errno);
		_exit(1);
	}
	long guest = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (guest == 0) {
		close(pair[0]);
		session_main(q, pair[1]);
	}
	close(pair[1]);
	if (guest < 0) {
		plan_fail(&q->job, STAGE_FORK, 1, errno);
		_exit(1);
	}
	q->job.status->guest_pid = (int32_t)guest;
	become_reaper(q, (pid_t)guest, pair[0]);
}

static __attribute__((noinline)) long split(struct request *q)
{
	struct clone3_args args = {
		.flags = CLONE_VM | CLONE_VFORK | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS |
			 CLONE_NEWIPC | CLONE_NEWUTS,
		.exit_signal = SIGCHLD,
		.stack = (uintptr_t)q->stack,
		.stack_size = STACK_BYTES,
	};

	if (q->job.plan->flags & PLANF_OWN_NETNS)
		args.flags |= CLONE_NEWNET;
	if (q->job.plan->cgroup_v2 && q->job.plan->cgroup_count) {
		args.flags |= CLONE3_INTO_CGROUP;
		args.cgroup = (uint64_t)q->fds[FD_CGROUP];
	}
	if (_setjmp(q->back))
		return 0;
	return clone_on_stack(&args, first_process, q);
}

/* 0 in the session, its pid in the template, or -1: no process could be made. */
__attribute__((visibility("default"))) int cordon_guest_fork(const int *fds);

int cordon_guest_fork(const int *fds)
{
	static struct request request; /* one thread, and the session has its own copy */
	struct request *q = &request;
	sigset_t all, old;

	/* Ended reapers of sessions need not be waited for. */
	(void)signal(SIGCHLD, SIG_IGN);
	q->fds = fds;
	q->job.locks_fd = 0;
	if (plan_map(&q->job, INIT_FD_PLAN, fds[FD_STATUS]) < 0)
		return -1;
	if (!q->stack) {
		q->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
		if (q->stack == MAP_FAILED)
			return -1;
	}
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	long pid = split(q);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (pid == 0)
		return 0;
	munmap(q->job.status, sizeof(struct status));
	munmap((void *)(uintptr_t)q->job.plan, q->job.plan->size);
	return pid < 0 ? -1 : (int)pid;
}
