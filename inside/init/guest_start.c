/* inside/init/guest_start.c - see guest_start.h. */
#include "inside/init/guest_start.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside/init/identity.h"
#include "inside/init/reaper.h"
#include "inside/init/seal.h"
#include "inside/init/terminals.h"
#include "wall/linux/kernel.h"

enum { ARGS_MAX = 256 };

/* Turns NUL-separated strings into a vector. */
static int vector(const struct job *j, uint32_t offset, uint32_t count, char **ret)
{
	char *p = (char *)(uintptr_t)plan_text(j, offset);

	if (count >= ARGS_MAX)
		return -E2BIG;
	for (uint32_t i = 0; i < count; i++) {
		ret[i] = p;
		p += strlen(p) + 1;
	}
	ret[count] = NULL;
	return 0;
}

/* Ignored signals were reset when this program started. */
static void unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* One CPU, chosen by our pid so that sandboxes are spread. */
static void bind_to_one_core(void)
{
	cpu_set_t all, one;
	unsigned char seed;

	if (sched_getaffinity(0, sizeof(all), &all) != 0 || CPU_COUNT(&all) < 2)
		return;
	if (syscall(SYS_getrandom, &seed, 1, 0) != 1)
		seed = 0;
	int skip = seed % CPU_COUNT(&all);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && skip-- == 0)
			CPU_SET(cpu, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
}

/* All guests of a place together have one CPU. Those that join inherit pid 1's. */
static void share_core(pid_t guest)
{
	cpu_set_t one;

	if (sched_getaffinity(guest, sizeof(one), &one) == 0)
		(void)sched_setaffinity(0, sizeof(one), &one);
}

/* A template keeps the plan and this program, which it needs to fork sessions. */
static void hide_descriptors(bool template)
{
	syscall(SYS_close_range, INIT_FD_CONTROL, INIT_FD_CONTROL, 4 /* CLOEXEC */);
	if (!template)
		syscall(SYS_close_range, INIT_FD_PLAN, INIT_FD_PLAN, 4);
	syscall(SYS_close_range, INIT_FD_STATUS, INIT_FD_STATUS, 4);
	if (!template)
		syscall(SYS_close_range, INIT_FD_SELF, INIT_FD_SELF, 4);
	syscall(SYS_close_range, INIT_FD_CGROUP, ~0U, 4);
}

/* Namespaces that the guest's process makes and pid 1 then enters. */
static int own_namespaces(const struct job *j)
{
	bool net = !(j->flags & (PLANF_NO_NETNS | PLANF_LOOPBACK));

	/* In v2 a process in a cgroup namespace cannot reach a group outside it. So a template,
	 * whose sessions get groups beside its own, has no such namespace; its sessions do. */
	bool groups = !(j->flags & PLANF_TEMPLATE) || !(j->flags & PLANF_BORN_IN_GROUP);

	if (!(j->flags & PLANF_USERNS))
		return 0;
	return (groups ? CLONE_NEWCGROUP : 0) | (net ? CLONE_NEWNET : 0);
}

int guest_join_cgroups(struct job *j)
{
	static const int fds[] = { INIT_FD_CGROUP, INIT_FD_CGROUP + 1, INIT_FD_CGROUP + 2 };

	return j->plan->cgroup_v2 ? 0 : identity_join_cgroups(j, fds, j->plan->cgroup_count);
}

/* Work that needs no plan. */
static int prepare_base(struct job *j)
{
	if ((own_namespaces(j) & CLONE_NEWNET) && unshare(CLONE_NEWNET) != 0)
		return plan_fail(j, STAGE_NAMESPACES, 2, errno);
	plan_mark(j, MARK_NETWORK);
	setsid();
	unblock_signals();
	return 0;
}

/* Work that needs no root. */
static int prepare(struct job *j, int report)
{
	/* Joined first, so that the new cgroup namespace has its root there. */
	if (guest_join_cgroups(j) < 0)
		return -1;
	if ((own_namespaces(j) & CLONE_NEWCGROUP) && unshare(CLONE_NEWCGROUP) != 0)
		return plan_fail(j, STAGE_NAMESPACES, 1, errno);
	if (j->flags & PLANF_ONE_CORE) /* before pid 1 looks at it */
		bind_to_one_core();
	if (reaper_send(report, 'N', NULL, 0) < 0)
		return plan_fail(j, STAGE_FORK, 2, errno);
	hide_descriptors(j->flags & PLANF_TEMPLATE);
	/* A template's sessions do this themselves. Pid 1 has emptied the bounding set. */
	if (j->flags & PLANF_TEMPLATE)
		return 0;
	return seal_rlimits(j) < 0 ? -1 : seal_privileges(j);
}

static int seal_one_shot(struct job *j, int report)
{
	int listener = -1, status = seal_open_status(j);

	if (status < 0 || seal_landlock(j) < 0 || seal_seccomp(j, FILTER_WHOLE, &listener) < 0)
		return -1;
	if (reaper_send(report, 'L', &listener, listener >= 0 ? 1 : 0) < 0)
		return plan_fail(j, STAGE_SECCOMP, 9, errno);
	return seal_open_files(j) < 0 ? -1 : seal_prove_process(j, status);
}

/* A template runs no untrusted code and must still make namespaces. So it has the wide filter, and
 * each session seals itself. */
static int seal_template(struct job *j, int report)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return plan_fail(j, STAGE_CAPABILITIES, 2, errno);
	if (seal_seccomp(j, FILTER_TEMPLATE, NULL) < 0)
		return -1;
	return reaper_send(report, 'L', NULL, 0) < 0 ? plan_fail(j, STAGE_SECCOMP, 9, errno) : 0;
}

/* Waits for pid 1's next message: the root is complete, or go. */
static bool is_told(int report)
{
	char byte;
	ssize_t n;

	while ((n = recv(report, &byte, 1, 0)) < 0 && errno == EINTR)
		;
	return n == 1;
}

struct program {
	char *argv[ARGS_MAX], *env[ARGS_MAX];
};

static int find_program(struct job *j, struct program *ret)
{
	const struct plan *p = j->plan;

	if (vector(j, p->argv, p->argc, ret->argv) < 0 || vector(j, p->env, p->envc, ret->env) < 0)
		return plan_fail(j, STAGE_PLAN, 3, E2BIG);
	/* Leaves the last host directory that we could still reach. */
	return chdir(plan_text(j, p->cwd)) != 0 ? plan_fail(j, STAGE_DIRECTORY, 0, errno) : 0;
}

_Noreturn static void become(struct job *j, struct program *program)
{
	j->status->state = STATE_RUNNING;
	plan_mark(j, MARK_EXEC);
	execve(plan_text(j, j->plan->executable), program->argv, program->env);
	plan_fail(j, STAGE_EXEC, 0, errno);
	_exit(1);
}

_Noreturn static void guest_main(struct job *j, int report)
{
	struct program program;

	if (prepare_base(j) < 0 || plan_receive(j) < 0 || prepare(j, report) < 0 ||
	    !is_told(report) || find_program(j, &program) < 0)
		_exit(1);
	int r = j->flags & PLANF_TEMPLATE ? seal_template(j, report) : seal_one_shot(j, report);
	plan_mark(j, MARK_SEALED);
	if (r < 0 || !is_told(report))
		_exit(1);
	become(j, &program);
}

/* Puts its descriptors at their numbers and closes all of pid 1's: the sockets and listeners of the
 * other guests among them. Returns the socket to pid 1 or -1. */
static int take_descriptors(const int *fds, int report)
{
	int parked[INIT_FD_CONTROL];

	/* Moved away first: a source may have the number of another's destination. */
	for (int i = 0; i < INIT_FD_CONTROL; i++) {
		parked[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, INIT_FD_END);
		if (fds[i] >= 0 && parked[i] < 0)
			return -1;
	}
	report = fcntl(report, F_DUPFD_CLOEXEC, INIT_FD_END);
	if (report < 0)
		return -1;
	for (int i = 0; i < INIT_FD_CONTROL; i++) {
		if (parked[i] < 0)
			close(i);
		else if (dup2(parked[i], i) < 0)
			return -1;
	}
	if (dup3(report, INIT_FD_CONTROL, O_CLOEXEC) < 0 ||
	    syscall(SYS_close_range, INIT_FD_CONTROL + 1, ~0U, 0) != 0)
		return -1;
	return INIT_FD_CONTROL;
}

/* Everything that a first guest does to itself; it is in the namespaces and control groups already,
 * and has no capabilities. */
_Noreturn static void joined_main(struct job *j, const int *fds, int report)
{
	struct program program;

	report = take_descriptors(fds, report);
	if (report < 0) {
		plan_fail(j, STAGE_JOIN, 2, errno);
		_exit(1);
	}
	setsid();
	if ((j->plan->flags & PLANF_ON_TERMINAL) && terminals_take() < 0) {
		plan_fail(j, STAGE_JOIN, 3, errno);
		_exit(1);
	}
	unblock_signals();
	if (seal_rlimits(j) < 0 || seal_privileges(j) < 0 || find_program(j, &program) < 0 ||
	    seal_prove_namespaces(j) < 0 || seal_one_shot(j, report) < 0)
		_exit(1);
	plan_mark(j, MARK_SEALED);
	become(j, &program);
}

pid_t guest_join(struct job *j, const int fds[static INIT_FD_CONTROL], int *ret_report)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
		plan_fail(j, STAGE_JOIN, 1, errno);
		return 0;
	}
	pid_t pid = fork();
	if (pid == 0)
		joined_main(j, fds, pair[1]);
	close(pair[1]);
	if (pid < 0) {
		plan_fail(j, STAGE_FORK, 1, errno);
		close(pair[0]);
		return 0;
	}
	j->status->guest_pid = pid;
	*ret_report = pair[0];
	return pid;
}

int guest_fork(struct job *j, struct guest *ret)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return plan_fail(j, STAGE_FORK, 0, errno);
	/* Descriptors that come with the plan have fixed numbers, so these move away. */
	for (int i = 0; i < 2; i++) {
		int moved = fcntl(pair[i], F_DUPFD_CLOEXEC, INIT_FD_END);

		if (moved < 0)
			return plan_fail(j, STAGE_FORK, 7, errno);
		close(pair[i]);
		pair[i] = moved;
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(pair[0]);
		guest_main(j, pair[1]);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return plan_fail(j, STAGE_FORK, 1, errno);
	}
	j->status->guest_pid = pid;
	*ret = (struct guest){ .pid = pid, .report = pair[0] };
	return 0;
}

int guest_admit(struct job *j, struct guest *g)
{
	if (!is_told(g->report)) /* it has recorded why */
		return -1;
	if ((j->flags & PLANF_STAYS) && (j->flags & PLANF_ONE_CORE))
		share_core(g->pid);
	if (own_namespaces(j)) {
		int fd = (int)syscall(SYS_pidfd_open, g->pid, 0);

		if (fd < 0 || setns(fd, own_namespaces(j)) != 0)
			return plan_fail(j, STAGE_NAMESPACES, 3, errno);
		close(fd);
	}
	plan_mark(j, MARK_JOINED);
	return reaper_send(g->report, 'R', NULL, 0) < 0 ? plan_fail(j, STAGE_FORK, 3, EPIPE) : 0;
}

int guest_release(struct guest *g)
{
	(void)reaper_send(g->report, 'G', NULL, 0);
	int listener = reaper_receive_fd(g->report);
	close(g->report);
	return listener;
}
