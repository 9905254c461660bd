/* wall/linux/probe/process.c - attacks on other processes, and on what a process inherits. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "wall/linux/kernel.h"
#include "wall/linux/probe/attacks.h"

extern char **environ;

static char target[16] = "untouched";

/* A child that waits to be attacked, until its parent closes the pipe. Without Landlock's scopes,
 * the filter forbids killing even a child. */
struct victim {
	pid_t pid;
	int hold;
};

static struct victim victim(void)
{
	struct victim v = { .pid = -1, .hold = -1 };
	int pair[2];

	if (pipe(pair) != 0)
		return v;
	v = (struct victim){ .pid = fork(), .hold = pair[1] };
	if (v.pid == 0) {
		char c;

		close(pair[1]);
		(void)!read(pair[0], &c, 1);
		_exit(0);
	}
	close(pair[0]);
	return v;
}

static int done_with(struct victim v, int verdict)
{
	close(v.hold);
	(void)probe_wait(v.pid);
	return verdict;
}

int probe_ptrace_child(const struct bait *b)
{
	struct victim v = victim();

	(void)b;
	return done_with(v, probe_verdict(ptrace(PTRACE_SEIZE, v.pid, NULL, NULL)));
}

int probe_ptrace_parent(const struct bait *b)
{
	(void)b;
	long r = ptrace(PTRACE_SEIZE, getppid(), NULL, NULL);

	if (r == 0)
		(void)ptrace(PTRACE_DETACH, getppid(), NULL, NULL);
	return probe_verdict(r);
}

/* Any address is enough: EFAULT from the parent's memory already means that access was allowed. */
int probe_vm_read_parent(const struct bait *b)
{
	char bytes[8];
	struct iovec here = { bytes, sizeof(bytes) };
	struct iovec there = { (void *)(uintptr_t)0x1000, sizeof(bytes) };

	(void)b;
	ssize_t n = process_vm_readv(getppid(), &here, 1, &there, 1, 0);
	/* EFAULT: access was allowed, only nothing is mapped there. */
	return n < 0 && errno == EFAULT ? 0 : probe_verdict(n);
}

int probe_vm_write_child(const struct bait *b)
{
	char bytes[8] = "changed";
	struct victim v = victim();
	struct iovec here = { bytes, sizeof(bytes) }, there = { target, sizeof(bytes) };

	(void)b;
	return done_with(v, probe_verdict(process_vm_writev(v.pid, &here, 1, &there, 1, 0)));
}

static int open_parent(const char *what, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", getppid(), what);
	return open(path, flags | O_CLOEXEC);
}

int probe_mem_parent(const struct bait *b)
{
	(void)b;
	return probe_verdict(open_parent("mem", O_RDWR));
}

int probe_environ_parent(const struct bait *b)
{
	char text[16];
	int fd = open_parent("environ", O_RDONLY);

	(void)b;
	if (fd < 0)
		return errno;
	ssize_t n = read(fd, text, sizeof(text));
	return n < 0 ? errno : n == 0 ? ENODATA : 0;
}

int probe_root_parent(const struct bait *b)
{
	char path[4200];

	snprintf(path, sizeof(path), "/proc/%d/root%s", getppid(), b->file);
	return probe_find_secret(path, b->secret);
}

int probe_fds_parent(const struct bait *b)
{
	int fd = open_parent("fd", O_RDONLY | O_DIRECTORY);

	(void)b;
	if (fd < 0)
		return errno;
	DIR *d = fdopendir(fd);
	int count = 0;
	while (d && readdir(d))
		count++;
	return count > 2 ? 0 : ENODATA;
}

int probe_pidfd_getfd(const struct bait *b)
{
	int pidfd = (int)syscall(SYS_pidfd_open, getppid(), 0);

	(void)b;
	if (pidfd < 0)
		return errno;
	long r = syscall(438 /* pidfd_getfd */, pidfd, 0, 0);
	return r < 0 && errno == EBADF ? 0 : probe_verdict(r);
}

int probe_kcmp(const struct bait *b)
{
	(void)b;
	return probe_verdict(syscall(SYS_kcmp, getpid(), getppid(), 1 /* VM */, 0, 0));
}

int probe_prlimit_parent(const struct bait *b)
{
	struct rlimit old;

	(void)b;
	if (prlimit(getppid(), RLIMIT_NOFILE, NULL, &old) != 0)
		return errno;
	return probe_verdict(prlimit(getppid(), RLIMIT_NOFILE, &old, NULL));
}

/* To its current value. */
static int renice(id_t pid)
{
	errno = 0;
	int nice_now = getpriority(PRIO_PROCESS, pid);

	return errno ? errno : probe_verdict(setpriority(PRIO_PROCESS, pid, nice_now));
}

int probe_renice_host(const struct bait *b)
{
	return renice((id_t)b->pid);
}

int probe_renice_parent(const struct bait *b)
{
	(void)b;
	return renice((id_t)getppid());
}

int probe_signal_parent(const struct bait *b)
{
	(void)b;
	return probe_verdict(kill(getppid(), 0));
}

int probe_signal_host(const struct bait *b)
{
	return probe_verdict(kill((pid_t)b->pid, 0));
}

int probe_signal_all(const struct bait *b)
{
	(void)b;
	return probe_verdict(kill(-1, 0));
}

int probe_pidfd_host(const struct bait *b)
{
	return probe_verdict(syscall(SYS_pidfd_open, b->pid, 0));
}

/* Every process except the sandbox's pid 1 and ourselves belongs to the host. */
int probe_list_host(const struct bait *b)
{
	DIR *d = opendir("/proc");

	(void)b;
	if (!d)
		return errno;
	int others = 0;
	for (struct dirent *e; (e = readdir(d));) {
		long pid = strtol(e->d_name, NULL, 10);
		others += pid > 1 && pid != getpid();
	}
	closedir(d);
	return others > 0 ? 0 : ENODATA;
}

int probe_environment(const struct bait *b)
{
	char text[8192];
	ssize_t n = 0;
	int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		n = read(fd, text, sizeof(text) - 1);
	for (char **e = environ; e && *e; e++)
		if (strstr(*e, b->secret))
			return 0;
	return n > 0 && memmem(text, (size_t)n, b->secret, strlen(b->secret)) ? 0 : ENODATA;
}

/* Any descriptor besides the streams and the wire was inherited by mistake. */
int probe_descriptors(const struct bait *b)
{
	struct stat st;

	(void)b;
	for (int fd = 4; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return 0;
	/* The wire is a socket and the streams are pipes. A directory or file there would lead to
	 * the host. */
	for (int fd = 0; fd < 4; fd++)
		if (fstat(fd, &st) == 0 && (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
			return 0;
	return EBADF;
}

int probe_pass_descriptor(const struct bait *b)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(8 * sizeof(int))];
	} u = { .room = { 0 } };
	int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fds[8] = { dir, dir, dir, dir, dir, dir, dir, dir };
	struct iovec iov = { (char[]){ "{}\n" }, 3 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = u.room,
			      .msg_controllen = sizeof(u.room) };

	(void)b;
	u.head.cmsg_level = SOL_SOCKET;
	u.head.cmsg_type = SCM_RIGHTS;
	u.head.cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(&u.head), fds, sizeof(fds));
	return probe_verdict(sendmsg(3, &msg, MSG_NOSIGNAL));
}

/* A process with the marker in its command line. */
_Noreturn static void linger(const struct bait *b)
{
	char *argv[] = { (char[]){ "probe" }, (char[]){ "--sleep" }, (char *)(uintptr_t)b->marker,
			 NULL };

	execve("/proc/self/exe", argv, environ);
	_exit(1);
}

int probe_survive_setsid(const struct bait *b)
{
	pid_t pid = fork();

	if (pid == 0) {
		setsid();
		if (fork() == 0) {
			setsid();
			if (fork() == 0)
				linger(b);
		}
		_exit(0);
	}
	(void)probe_wait(pid);
	usleep(20000);
	return 0;
}

int probe_survive_signals(const struct bait *b)
{
	for (int i = 0; i < 8; i++)
		if (fork() == 0) {
			setsid();
			for (int s = 1; s < 65; s++)
				(void)signal(s, SIG_IGN);
			if (i % 2)
				(void)raise(SIGSTOP);
			linger(b);
		}
	usleep(50000);
	return 0;
}
