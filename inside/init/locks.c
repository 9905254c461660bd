/* inside/init/locks.c - see locks.h. The arguments of a call are in the guest's memory and may
 * change until the kernel reads them. So calls are counted, not what they ask for. After a number
 * of calls, the existing locks are counted in the kernel's list, which shows those of our pid
 * namespace. */
#include "inside/init/locks.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "wall/linux/kernel.h"

/* About 200 bytes each: a few megabytes in total. */
enum { CALLS = 4096, CALLS_AFTER_REFUSAL = 256, MOST = 16384 };

static unsigned calls;

/* -1: unknown. */
static long count(int fd)
{
	static char text[65536];
	long lines = 0;
	off_t at = 0;

	for (;;) {
		ssize_t n = pread(fd, text, sizeof(text), at);

		if (n <= 0)
			return n < 0 ? -1 : lines;
		for (ssize_t i = 0; i < n; i++)
			lines += text[i] == '\n';
		if (lines > MOST)
			return lines;
		at += n;
	}
}

bool locks_may_add(const struct job *j)
{
	static bool is_refused;

	if (++calls <= (is_refused ? CALLS_AFTER_REFUSAL : CALLS))
		return !is_refused;
	long there = j->locks_fd > 0 ? count(j->locks_fd) : -1;
	is_refused = there < 0 || there > MOST;
	calls = 0;
	return !is_refused;
}

/* With a single thread, nobody can replace the descriptor that we check: the filter allows only
 * threads to share descriptor tables. */
static bool is_alone(pid_t task)
{
	char path[64], text[2048];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)task);
	int fd = kernel_open(path, O_RDONLY | O_CLOEXEC, 0);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return strstr(text, "\nThreads:\t1\n") != NULL;
}

bool locks_may_flock(const struct job *j, pid_t task, int fd)
{
	bool is_careful = j->plan->flags & PLANF_LIVE_RO;
	struct statvfs fs;
	char path[64];

	if (is_careful &&
	    !(j->plan->flags &
	      PLANF_USERNS)) /* without mounts it is unknown which files are read-only */
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)task, fd);
	if (statvfs(path, &fs) !=
	    0) /* cannot be read: a session forked from a template is not dumpable */
		return !is_careful;
	return !(fs.f_flag & ST_RDONLY) && (!is_careful || is_alone(task));
}
