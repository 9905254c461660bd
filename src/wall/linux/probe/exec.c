/* wall/linux/probe/exec.c - attacks that start a program that may not run. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wall/linux/probe/attacks.h"

enum { STARTED = 42, NOEXEC_SEAL = 8 };

static char *const started[] = { (char[]){ "probe" }, (char[]){ "--started" }, NULL };
static char *const no_env[] = { NULL };

static int copy(const char *from, int to)
{
	char bytes[65536];
	int fd = open(from, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return errno;
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, (size_t)n) != n)
			break;
	close(fd);
	return n == 0 ? 0 : errno;
}

/* The verdict from how a child that tried to exec ended. */
static int outcome(pid_t pid, int want)
{
	int status = probe_wait(pid);

	return status == want ? 0 : status < 127 && status > 0 ? status : ENOEXEC;
}

static int exec_path(const char *path)
{
	pid_t pid = fork();

	if (pid == 0) {
		execve(path, started, no_env);
		_exit(errno);
	}
	return outcome(pid, STARTED);
}

static int exec_memory(unsigned flags)
{
	char path[192];
	int fd = (int)syscall(SYS_memfd_create, "probe", flags);

	if (fd < 0)
		return errno;
	int e = copy("/proc/self/exe", fd);
	if (e)
		return e;
	(void)fchmod(fd, 0755);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* A file that is open for writing cannot be executed. */
	int ro = open(path, O_RDONLY);
	if (ro < 0)
		return errno;
	close(fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ro);
	return exec_path(path);
}

int probe_memfd_exec(const struct bait *b)
{
	(void)b;
	return exec_memory(0);
}

int probe_memfd_sealed_exec(const struct bait *b)
{
	return exec_memory(b->is_control ? 0 : NOEXEC_SEAL);
}

/* Copies a program into the workspace. */
static int copy_program(const char *from, char *ret, size_t size)
{
	probe_name(ret, size, "cordon-probe-exec");
	int fd = open(ret, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0755);
	if (fd < 0)
		return errno;
	int e = copy(from, fd);
	(void)fchmod(fd, 0755);
	close(fd);
	return e;
}

int probe_workspace_exec(const struct bait *b)
{
	char path[192];
	int e = copy_program("/proc/self/exe", path, sizeof(path));

	(void)b;
	if (!e)
		e = exec_path(path);
	(void)unlink(path);
	return e;
}

int probe_workspace_script(const struct bait *b)
{
	char path[192], self[160] = "", text[192];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)b;
	probe_name(path, sizeof(path), "cordon-probe-script");
	int len = snprintf(text, sizeof(text), "#!%s --started\n", self);
	int fd = n > 0 ? open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0755) : -1;
	if (fd < 0)
		return errno;
	int e = write(fd, text, (size_t)len) != len ? errno : 0;
	(void)fchmod(fd, 0755);
	close(fd);
	if (!e)
		e = exec_path(path);
	(void)unlink(path);
	return e;
}

/* An open program of the workspace, which has no name any more. */
static int open_program(int *ret_fd)
{
	char path[192];
	int e = copy_program("/proc/self/exe", path, sizeof(path));

	*ret_fd = e ? -1 : open(path, O_RDONLY);
	e = *ret_fd < 0 && !e ? errno : e;
	(void)unlink(path);
	return e;
}

int probe_workspace_fd(const struct bait *b)
{
	char path[192];
	int fd, e = open_program(&fd);

	(void)b;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return e ? e : exec_path(path);
}

int probe_workspace_map(const struct bait *b)
{
	int fd, e = open_program(&fd);

	(void)b;
	if (!e && mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		e = errno;
	return e;
}

int probe_workspace_protect(const struct bait *b)
{
	int fd, e = open_program(&fd);
	void *at = e ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	(void)b;
	if (!e && (at == MAP_FAILED || mprotect(at, 4096, PROT_READ | PROT_EXEC) != 0))
		e = errno;
	return e;
}

int probe_execveat_exec(const struct bait *b)
{
	char path[192];
	int e = copy_program("/proc/self/exe", path, sizeof(path));
	int fd = e ? -1 : open(path, O_RDONLY);

	(void)b;
	if (!e) {
		pid_t pid = fork();
		if (pid == 0) {
			syscall(SYS_execveat, fd, "", started, no_env, AT_EMPTY_PATH);
			_exit(errno);
		}
		e = outcome(pid, STARTED);
	}
	(void)unlink(path);
	return e;
}

static const char *first_of(const char *const *paths)
{
	for (; *paths; paths++)
		if (access(*paths, R_OK) == 0)
			return *paths;
	return NULL;
}

static const char *loader(void)
{
	static const char *const paths[] = { "/lib64/ld-linux-x86-64.so.2",
					     "/lib/ld-linux-aarch64.so.1",
					     "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", NULL };

	return first_of(paths);
}

/* The loader maps a program and jumps into it, without an execve of that program. */
static int load(const char *program)
{
	const char *ld = loader();
	char *const argv[] = { (char[]){ "ld.so" }, (char *)(uintptr_t)program,
			       (char[]){ "--version" }, NULL };

	if (!ld)
		return ENOENT;
	pid_t pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);
		dup2(null, 1);
		dup2(null, 2);
		execve(ld, argv, no_env);
		_exit(errno);
	}
	return outcome(pid, 0);
}

int probe_workspace_loader(const struct bait *b)
{
	static const char *const programs[] = { "/usr/bin/true",         "/usr/bin/python3",
						"/usr/bin/bash",         "/usr/bin/node",
						"/usr/lib/R/bin/exec/R", NULL };
	const char *program = first_of(programs);
	char path[192];

	(void)b;
	if (!program)
		return ENOENT;
	int e = copy_program(program, path, sizeof(path));
	if (!e)
		e = load(path);
	(void)unlink(path);
	return e;
}

/* Programs that no policy here lists and that are not part of a guest. */
static const char *const unlisted[] = { "/usr/bin/true",
					"/usr/bin/id",
					"/usr/bin/env",
					"/usr/bin/perl",
					"/usr/bin/dash",
					"/usr/bin/curl",
					"/usr/bin/gdb",
					"/usr/bin/gcc",
					"/usr/bin/su",
					"/usr/sbin/ldconfig",
					NULL };

int probe_unlisted_exec(const struct bait *b)
{
	char *const argv[] = { (char[]){ "probe" }, (char[]){ "--version" }, NULL };
	int worst = ENOENT;

	(void)b;
	for (const char *const *p = unlisted; *p; p++) {
		pid_t pid = fork();
		if (pid == 0) {
			int null = open("/dev/null", O_WRONLY);
			dup2(null, 1);
			dup2(null, 2);
			execve(*p, argv, no_env);
			_exit(errno);
		}
		int e = outcome(pid, 0);
		if (e == 0)
			return 0;
		worst = e == ENOENT ? worst : e;
	}
	return worst;
}

int probe_unlisted_loader(const struct bait *b)
{
	int worst = ENOENT;

	(void)b;
	for (const char *const *p = unlisted; *p; p++) {
		int e = access(*p, R_OK) == 0 ? load(*p) : errno;
		if (e == 0)
			return 0;
		worst = e == ENOENT ? worst : e;
	}
	return worst;
}
