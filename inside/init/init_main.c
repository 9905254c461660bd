/* inside/init/init_main.c - cordon-init: the supervisor outside the sandbox, which sets up the
 * sandbox around pid 1 and outlives it. As `cordon-init reap` it is pid 1 of a session that a
 * template forked.
 *
 * It starts unprivileged: the host has already dropped to a dedicated non-zero uid. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inside/init/guest_start.h"
#include "inside/init/identity.h"
#include "inside/init/memory.h"
#include "inside/init/no_userns_init.h"
#include "inside/init/reaper.h"
#include "inside/init/root.h"
#include "inside/init/seal.h"
#include "inside/init/skeleton.h"
#include "inside/init/terminals.h"
#include "wall/linux/kernel.h"

/* Moves a descriptor away from the numbers of the guest and of what comes with the plan. */
static int out_of_the_way(int fd)
{
	int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, INIT_FD_END);

	if (fd >= 0)
		close(fd);
	return moved;
}

/* A pipe that has a writer as long as the supervisor lives. */
static int parent_pipe_open(int ret[static 2])
{
	if (pipe2(ret, O_CLOEXEC | O_NONBLOCK) != 0)
		return -1;
	ret[0] = out_of_the_way(ret[0]);
	ret[1] = out_of_the_way(ret[1]);
	return ret[0] < 0 || ret[1] < 0 ? -1 : 0;
}

/* The kernel sends the signal only to those who have asked before. A supervisor that was killed
 * earlier has lost its descriptors: the kernel closes them before it sends such signals. */
static void end_with_supervisor(const int parent_pipe[static 2])
{
	char byte;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(parent_pipe[1]);
	if (read(parent_pipe[0], &byte, 1) == 0)
		_exit(1);
	close(parent_pipe[0]);
}

static void be_ordinary(void)
{
	/* The guest must not inherit a host's real-time priority, and no cpu group would accept
	 * it. */
	long policy = syscall(SYS_sched_getscheduler, 0);
	if (policy == SCHED_FIFO || policy == SCHED_RR)
		(void)syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &(struct sched_param){ 0 });
}

static int send_workspace(struct job *j, int fd)
{
	if (reaper_send(INIT_FD_CONTROL, CONTROL_WORKSPACE, &fd, 1) < 0)
		return plan_fail(j, STAGE_WORKSPACE, 9, errno);
	close(fd);
	return 0;
}

/* What all sandboxes have in common: done while the host makes the plan. */
static int build_base(struct job *j, uid_t uid, gid_t gid)
{
	if (!(j->flags & PLANF_USERNS))
		return 0;
	if (identity_map(j, uid, gid) < 0 || identity_hostname(j) < 0 ||
	    identity_forbid_nesting(j, j->flags & PLANF_TEMPLATE ? 1000 : 0) < 0 ||
	    identity_limit_watches(j, j->flags & PLANF_TEMPLATE) < 0 || skeleton_build(j) < 0)
		return -1;
	plan_mark(j, MARK_BASE);
	return 0;
}

static int build(struct job *j)
{
	const struct plan *p = j->plan;
	int workspace = -1;

	plan_mark(j, MARK_PLAN);
	if (!(j->flags & PLANF_USERNS)) {
		if (no_userns_build(j, &workspace) < 0)
			return -1;
		return send_workspace(j, workspace);
	}
	/* Each session of a template has a network namespace of its own (inside/lib/fork.c). */
	if ((j->flags & PLANF_LOOPBACK) && !(j->flags & PLANF_TEMPLATE) &&
	    identity_open_relay(j, INIT_FD_RELAY) < 0)
		return -1;
	if ((j->flags & PLANF_RELAY) && !(j->flags & PLANF_TEMPLATE))
		close(INIT_FD_RELAY);
	if (root_build(j) < 0 || terminals_mount(j, "dev", INIT_FD_CONTROL) < 0 ||
	    root_pivot(j) < 0)
		return -1;
	/* A template may write while it warms up. Each session's workspace is mounted over that. */
	if (root_workspace(j, plan_text(j, p->workspace_data), &workspace) < 0)
		return -1;
	if (send_workspace(j, workspace) < 0)
		return -1;
	plan_mark(j, MARK_ROOT);
	/* A template's limits would be shared by all its sessions, and those of a place's pid 1 by
	 * all its guests, so each session and guest sets its own. */
	return j->flags & (PLANF_TEMPLATE | PLANF_STAYS) ? 0 : seal_rlimits(j);
}

/* Closes the guest's descriptors, so that their pipes reach end of file when the guest is gone. */
static void let_go(void)
{
	syscall(SYS_close_range, 0, INIT_FD_CONTROL - 1, 0);
}

/* The plan brings another descriptor with this number. */
static void leave_group_alone(const struct job *j)
{
	if (j->flags & PLANF_BORN_IN_GROUP)
		close(INIT_FD_CGROUP);
}

/* Waits until the host has set the last limits. It closes the socket if it could not. */
static bool may_go(void)
{
	char order;
	ssize_t n;

	while ((n = recv(INIT_FD_CONTROL, &order, 1, 0)) < 0 && errno == EINTR)
		;
	return n == 1 && order == CONTROL_GO;
}

/* While the root is built here, the guest's process does what needs no root. It seals itself while
 * we leave the host's root, and is released when there is no way back. Its network namespace takes
 * longest, so it is forked early, right after what it must inherit. */
static int build_all(struct job *j, struct guest *g, uid_t uid, gid_t gid)
{
	bool template = j->flags & PLANF_TEMPLATE, spaced = j->flags & PLANF_USERNS;

	if ((!template && seal_bounding(j) < 0) || guest_fork(j, g) < 0 ||
	    build_base(j, uid, gid) < 0 || plan_receive(j) < 0 || build(j) < 0 ||
	    guest_admit(j, g) < 0 || (spaced && root_leave(j) < 0) ||
	    seal_prove_namespaces(j) < 0 || guest_join_cgroups(j) < 0)
		return -1;
	return template ? 0 : seal_privileges(j);
}

/* pid 1 of the new namespaces. */
_Noreturn static void init_main(struct job *j, const int parent_pipe[static 2], uid_t uid,
				gid_t gid)
{
	struct guest g;

	end_with_supervisor(parent_pipe);
	plan_mark(j, MARK_SPACES);
	leave_group_alone(j);
	be_ordinary();
	/* Without a pid namespace its orphans become our children, and after our end the
	 * supervisor's. */
	if (!(j->flags & PLANF_USERNS) && prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
		plan_fail(j, STAGE_FORK, 4, errno);
		_exit(1);
	}
	if (!(j->flags & PLANF_USERNS)) /* then it lists the locks of the whole machine */
		root_keep_locks(j, "/proc");
	if (build_all(j, &g, uid, gid) < 0)
		_exit(1);
	/* It has the guest's uid: forbid tracing and reading it, in case other layers fail. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	plan_mark(j, MARK_LEFT);
	if (!may_go())
		_exit(1);
	int listener = out_of_the_way(guest_release(&g));
	let_go();
	reaper_run(j, g.pid, INIT_FD_CONTROL, listener);
}

/* Looking for groups that others left costs more than removing our own, so it is done rarely. */
enum { STALE_SECONDS = 10, SWEEP_EVERY = 16 };

static bool remove_patiently(int parent, const char *name)
{
	for (int tries = 0; tries < 50; tries++) {
		if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
			return true;
		poll(NULL, 0, 1); /* the last task is still exiting */
	}
	return false;
}

/* A host that was killed before it had a supervisor leaves an empty group "PID-..." of a process
 * that no longer exists. A group that is just being made is younger than STALE_SECONDS. */
static bool is_stale(int parent, const char *name)
{
	struct stat st;
	char *end;
	long pid = strtol(name, &end, 10);

	return pid > 0 && *end == '-' && kill((pid_t)pid, 0) != 0 && errno == ESRCH &&
	       fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       time(NULL) - st.st_mtime >= STALE_SECONDS;
}

/* Removes our cgroups and those of a template's sessions ("NAME.*") when everything in them is
 * dead. The host may be gone by then. */
static void remove_cgroups(const struct job *j)
{
	bool template = j->flags & PLANF_TEMPLATE;
	bool sweeps = template || getpid() % SWEEP_EVERY == 0;

	for (uint32_t i = 0; i < j->plan->cgroup_count; i++) {
		int parent = INIT_FD_PARENT + (int)i;
		const char *name = plan_text(j, j->plan->cgroup_names[i]);
		size_t len = strlen(name);
		DIR *d = sweeps ? fdopendir(dup(parent)) : NULL;

		for (struct dirent *e; d && (e = readdir(d));) {
			if (template && strncmp(e->d_name, name, len) == 0 && e->d_name[len] == '.')
				(void)remove_patiently(parent, e->d_name);
			else if (is_stale(parent, e->d_name))
				(void)unlinkat(parent, e->d_name, AT_REMOVEDIR);
		}
		if (d)
			closedir(d);
		(void)remove_patiently(parent, name);
	}
}

static volatile sig_atomic_t is_told_to_end;

static void told_to_end(int signo)
{
	(void)signo;
	is_told_to_end = 1;
}

/* Waits until the host is gone. A guest that it wanted to start in a place comes too late: its
 * request is dropped, and with it the other end of its control socket, so the host learns that. */
static void wait_for_host(void)
{
	struct pollfd p = { .fd = INIT_FD_CONTROL, .events = POLLIN };
	char request[64];

	while (poll(&p, 1, -1) < 0 || !(p.revents & ~POLLIN))
		if (p.revents & POLLIN && recv(INIT_FD_CONTROL, request, sizeof(request), 0) < 0 &&
		    errno != EINTR)
			return;
}

/* Waits until pid 1 is dead. Ends it when the host is gone or sends SIGTERM. */
static void watch(struct job *j, pid_t pid, int pidfd)
{
	struct pollfd p[2] = { { .fd = INIT_FD_CONTROL, .events = 0 },
			       { .fd = pidfd, .events = POLLIN } };
	sigset_t none;
	int status;

	sigemptyset(&none);
	while (!is_told_to_end && !p[0].revents && !(p[1].revents & POLLIN)) {
		int ms = memory_look(j, pid);
		struct timespec patience = { .tv_nsec = ms * 1000000L };

		(void)ppoll(p, 2, ms < 0 ? NULL : &patience, &none);
	}
	if (!(p[1].revents & POLLIN))
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
}

/* Outlives pid 1, reports its end to the host, and stays until the host has read the counters. Then
 * it cleans up, also if the host died. */
static int keep(struct job *j, pid_t pid, int pidfd)
{
	bool spaced = j->flags & PLANF_USERNS;

	j->status->init_pid = pid;
	bool has_plan = plan_receive(j) == 0;
	let_go();
	if (!has_plan)
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	watch(j, pid, pidfd);
	if (!spaced)
		no_userns_end();
	plan_mark(j, MARK_EMPTY);
	(void)shutdown(INIT_FD_CONTROL, SHUT_WR);
	wait_for_host();
	if (!has_plan) /* without a plan there is nothing else to remove */
		return -1;
	remove_cgroups(j);
	if (!spaced)
		no_userns_remove(j);
	return 0;
}

static void listen_to_host(void)
{
	struct sigaction sa = { .sa_handler = told_to_end };
	sigset_t term;

	/* Blocked except in ppoll, so that it cannot arrive just before. */
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_SETMASK, &term, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

/* v2: pid 1 is cloned into its group. We are in another group, because a process cannot remove its
 * own. */
static void clone_into_group(const struct job *j, struct clone3_args *args)
{
	if (!(j->flags & PLANF_BORN_IN_GROUP))
		return;
	args->flags |= CLONE3_INTO_CGROUP;
	args->cgroup = INIT_FD_CGROUP;
}

static int supervisor_main(struct job *j)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	int pidfd = -1, parent_pipe[2];
	struct clone3_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS |
			 0x1000 /* CLONE_PIDFD */ | CLONE3_CLEAR_SIGHAND,
		.pidfd = (uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};

	/* A network namespace takes longest to make. The guest's process does that in parallel,
	 * unless the gateway's sockets must be opened in it. */
	if (!(j->flags & PLANF_NO_NETNS) && (j->flags & PLANF_LOOPBACK))
		args.flags |= CLONE_NEWNET;
	clone_into_group(j, &args);
	listen_to_host();
	/* Changing the uid made us undumpable, and then /proc/self/uid_map could not be written. */
	(void)prctl(PR_SET_DUMPABLE, 1);
	if (parent_pipe_open(parent_pipe) < 0)
		return plan_fail(j, STAGE_FORK, 9, errno);
	long pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		return plan_fail(j, STAGE_NAMESPACES, 0, errno);
	if (pid == 0)
		init_main(j, parent_pipe, uid, gid);
	close(parent_pipe[0]);
	leave_group_alone(j);
	pidfd = out_of_the_way(pidfd);
	if (pidfd < 0) {
		int e = errno;

		(void)kill((pid_t)pid, SIGKILL);
		(void)waitpid((pid_t)pid, NULL, __WALL);
		return plan_fail(j, STAGE_FORK, 8, e);
	}
	return keep(j, (pid_t)pid, pidfd);
}

/* Without namespaces, nothing ends with pid 1 except what we find and kill. */
static int no_userns_main(struct job *j)
{
	struct clone3_args args = { .exit_signal = SIGCHLD };
	int parent_pipe[2];

	clone_into_group(j, &args);
	listen_to_host();
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
		return plan_fail(j, STAGE_FORK, 5, errno);
	/* The guest has our uid, and no user namespace separates us. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	if (parent_pipe_open(parent_pipe) < 0)
		return plan_fail(j, STAGE_FORK, 10, errno);
	/* Where namespaces are refused, clone3 may be refused too. */
	pid_t pid = args.flags ? (pid_t)syscall(SYS_clone3, &args, sizeof(args)) : fork();
	if (pid == 0)
		init_main(j, parent_pipe, getuid(), getgid());
	close(parent_pipe[0]);
	leave_group_alone(j);
	int pidfd = pid < 0 ? -1 : out_of_the_way((int)syscall(SYS_pidfd_open, pid, 0));
	if (pidfd < 0) {
		int e = errno;

		if (pid > 0)
			(void)kill(pid, SIGKILL);
		no_userns_end();
		if (plan_receive(j) == 0)
			no_userns_remove(j);
		return plan_fail(j, STAGE_FORK, 6, e);
	}
	return keep(j, pid, pidfd);
}

/* Resets what we inherited from the host. With ignored signals pid 1 would miss the end of the
 * guest; with a strict umask the root would have no permissions. */
static void forget_host(void)
{
	const struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} ordinary = { 0 };

	for (int s = 1; s < 65; s++) /* raw calls: the C library's function does more for each */
		(void)syscall(SYS_rt_sigaction, s, &ordinary, NULL, sizeof(ordinary.mask));
	(void)umask(022);
	/* Descriptors in flight are counted per uid against this limit. It is above what all
	 * sandboxes of our user may have in flight, so none can block another's start. */
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

int main(int argc, char **argv)
{
	struct job j = { 0 };

	if (argc > 2 && strcmp(argv[1], "reap") == 0) {
		if (plan_map(&j, INIT_FD_PLAN, INIT_FD_STATUS) < 0)
			return 125;
		/* Exec has undone that. The guest has our uid: if other layers fail, it must not
		 * open our memory. */
		(void)prctl(PR_SET_DUMPABLE, 0);
		j.is_session = true;
		j.locks_fd = INIT_FD_CGROUP + 1;
		/* The session sends the listener of its filter when it has sealed itself. */
		int listener = reaper_receive_fd(INIT_FD_CGROUP);
		close(INIT_FD_CGROUP);
		reaper_run(&j, (pid_t)strtol(argv[2], NULL, 10), INIT_FD_CONTROL, listener);
	}
	forget_host();
	if (argc != 2 || plan_map_status(&j, INIT_FD_STATUS) < 0)
		return 125;
	j.flags = (uint32_t)strtoul(argv[1], NULL, 10);
	plan_mark(&j, MARK_SUPERVISOR);
	/* The host handles ^C on its terminal. Not a new session: the scheduler would treat us as a
	 * group of our own, which waits longer on a busy machine. */
	(void)setpgid(0, 0);
	if (!(j.flags & PLANF_USERNS))
		return no_userns_main(&j) < 0;
	return supervisor_main(&j) < 0;
}
