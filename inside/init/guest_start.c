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
	if (reaper_send(report, 'N', NULL, 0) < 0)
		return plan_fail(j, STAGE_FORK, 2, errno);
	if (j->flags & PLANF_ONE_CORE)
		bind_to_one_core();
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

_Noreturn static void guest_main(struct job *j, int report)
{
	char *argv[ARGS_MAX], *env[ARGS_MAX];

	if (prepare_base(j) < 0 || plan_receive(j) < 0 || prepare(j, report) < 0 ||
	    !is_told(report))
		_exit(1);
	const struct plan *p = j->plan;
	if (vector(j, p->argv, p->argc, argv) < 0 || vector(j, p->env, p->envc, env) < 0) {
		plan_fail(j, STAGE_PLAN, 3, E2BIG);
		_exit(1);
	}
	/* Leaves the last host directory that we could still reach. */
	if (chdir(plan_text(j, p->cwd)) != 0) {
		plan_fail(j, STAGE_EXEC, 1, errno);
		_exit(1);
	}
	int r = j->flags & PLANF_TEMPLATE ? seal_template(j, report) : seal_one_shot(j, report);
	plan_mark(j, MARK_SEALED);
	if (r < 0 || !is_told(report))
		_exit(1);
	j->status->state = STATE_RUNNING;
	plan_mark(j, MARK_EXEC);
	execve(plan_text(j, p->executable), argv, env);
	plan_fail(j, STAGE_EXEC, 0, errno);
	_exit(1);
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
