/* wall/linux/spawn.c - see spawn.h. child() is the only function that runs between clone and exec.
 * It shares the host's memory, so it only makes system calls. They are raw calls, because a wrapper
 * may update data that belongs to the host (ThreadSanitizer's table of descriptors, the C library's
 * list of threads). */
#include "wall/linux/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wall/linux/clone.h"
#include "wall/linux/kernel.h"

/* The child never returns from these, so a sanitizer must not instrument them: AddressSanitizer
 * would take what is mapped later, where its stack was, for that stack. */
#define IN_CHILD __attribute__((no_sanitize("thread", "address")))

enum { STACK_BYTES = 64 * 1024, PARK = SPAWN_FDS };

struct child_job {
	const struct spawn *spawn;
	int failed_errno; /* written by the child into our memory */
};

IN_CHILD static int drop_privileges(const struct spawn *s)
{
	/* EINVAL: beyond the last capability. */
	for (unsigned long cap = 0; s->empties_bounding && cap < 64; cap++)
		if (syscall(SYS_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0) != 0) {
			if (errno != EINVAL)
				return -1;
			break;
		}
	uid_t uid = s->uid + (s->adds_pid ? (uid_t)syscall(SYS_getpid) : 0);
	if (syscall(SYS_setgroups, 0, NULL) != 0 ||
	    syscall(SYS_setresgid, s->gid, s->gid, s->gid) != 0 ||
	    syscall(SYS_setresuid, uid, uid, uid) != 0)
		return -1;
	return 0;
}

IN_CHILD static int park(int fd)
{
	return (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, PARK);
}

IN_CHILD static int child(void *arg)
{
	struct child_job *job = arg;
	const struct spawn *s = job->spawn;
	char *const none[] = { NULL };
	int parked[SPAWN_FDS];

	/* Moved away first: a source may have the number of another's destination. */
	for (int i = 0; i < SPAWN_FDS; i++) {
		parked[i] = s->fds[i] < 0 ? -1 : park(s->fds[i]);
		if (s->fds[i] >= 0 && parked[i] < 0)
			goto failed;
	}
	int program = park(s->program_fd);
	if (program < 0)
		goto failed;
	for (int i = 0; i < SPAWN_FDS; i++) {
		if (parked[i] < 0)
			(void)syscall(SYS_close, i);
		else if (syscall(SYS_dup3, parked[i], i, 0) < 0)
			goto failed;
	}
	/* Closes all other descriptors of the host at exec. */
	if (syscall(SYS_close_range, SPAWN_FDS, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */) != 0)
		goto failed;
	if (syscall(SYS_geteuid) != (long)s->uid && drop_privileges(s) != 0)
		goto failed;
	(void)syscall(SYS_execveat, program, "", s->argv, none, AT_EMPTY_PATH);
failed:
	/* EINVAL: the limit on descriptors is below PARK. */
	job->failed_errno = errno == EINVAL ? EMFILE : errno;
	(void)syscall(SYS_exit_group, 127);
	__builtin_unreachable();
}

static long start(struct child_job *job, char *stack, int *ret_pidfd)
{
	struct clone3_args args = {
		.flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD,
		.pidfd = (uintptr_t)ret_pidfd,
		/* No exit signal: a host that waits for its own children must not reap ours. */
		.stack = (uintptr_t)stack,
		.stack_size = STACK_BYTES,
	};

	if (job->spawn->cgroup_fd >= 0) {
		args.flags |= CLONE3_INTO_CGROUP;
		args.cgroup = (uint64_t)job->spawn->cgroup_fd;
	}
	long pid = clone_on_stack(&args, child, job);
	/* A container's filter may refuse clone3. clone supports all but cgroups. */
	if (pid == -ENOSYS && job->spawn->cgroup_fd < 0) {
		pid = clone(child, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | CLONE_PIDFD, job,
			    ret_pidfd);
		return pid < 0 ? -errno : pid;
	}
	return pid;
}

int spawn_start(const struct spawn *s, pid_t *ret_pid, int *ret_pidfd, struct cordon_error **reterr)
{
	struct child_job job = { .spawn = s };
	sigset_t all, old;
	int pidfd = -1;

	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return err_errno(reterr, errno, "map a stack for the supervisor");
	/* No signal handler of the host may run in a child that shares its memory. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	long pid = start(&job, stack, &pidfd);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	munmap(stack, STACK_BYTES);
	if (pid < 0)
		return err_errno(reterr, (int)-pid, "start the supervisor");
	if (job.failed_errno) {
		siginfo_t info;
		(void)waitid(P_PID, (id_t)pid, &info, WEXITED | __WALL);
		close(pidfd);
		return err_errno(reterr, job.failed_errno, "start the supervisor");
	}
	*ret_pid = (pid_t)pid;
	*ret_pidfd = pidfd;
	return 0;
}
