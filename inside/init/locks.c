/* inside/init/locks.c - see locks.h. What a call does is in the guest's memory, which may change
 * until the kernel reads it: calls are counted, not what they ask for. After so many the locks that
 * there are, are counted in the kernel's own list, which shows those of our pid namespace. */
#include "inside/init/locks.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "wall/linux/kernel.h"

/* Some 200 bytes each: a few megabytes in all. */
enum { CALLS = 4096, CALLS_AFTER_REFUSAL = 256, MOST = 16384 };

static unsigned calls;

/* -1: nobody can tell. */
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

/* Nobody else can put another file at the number that we look at: tables are shared by threads
 * alone, which the filter sees to. */
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

	if (is_careful && !(j->plan->flags & PLANF_USERNS)) /* no mount tells what is for reading */
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)task, fd);
	if (statvfs(path, &fs) != 0) /* a session that was forked from a template keeps to itself */
		return !is_careful;
	return !(fs.f_flag & ST_RDONLY) && (!is_careful || is_alone(task));
}
