/* tests/soak/kills.c - see kills.h. */
#include "soak/kills.h"

#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "wall/linux/format.h"

enum { DEPTH_MAX = 8, CHILDREN_MAX = 256, END_MS = 60000 };
/* A mark that was taken while a kill was under way: what begins then may meet a sandbox that has
 * not ended yet, but will. */
#define UNDER_WAY UINT_MAX

static atomic_uint begun, over;

unsigned kills_mark(void)
{
	unsigned ended = atomic_load(&over); /* first: then none was under way if they are equal */

	return ended == atomic_load(&begun) ? ended : UNDER_WAY;
}

bool kills_spared(unsigned mark)
{
	return mark != UNDER_WAY && mark == atomic_load(&begun);
}

unsigned kills_count(void)
{
	return atomic_load(&over);
}

/* ---- whom */

/* From us down to the one that is killed. */
struct line {
	pid_t pids[DEPTH_MAX];
	int fds[DEPTH_MAX]; /* pidfds */
	unsigned count;
};

static void line_done(struct line *l)
{
	for (unsigned i = 0; i < l->count; i++)
		close(l->fds[i]);
	l->count = 0;
}

static pid_t parent_of(pid_t pid)
{
	char path[64], text[512] = "";
	int parent = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *f = fopen(path, "re");
	if (f)
		(void)fread(text, 1, sizeof(text) - 1, f);
	if (f)
		(void)fclose(f);
	const char *p = strrchr(text, ')');
	return p && sscanf(p, ") %*c %d", &parent) == 1 ? parent : 0;
}

/* Fewer than max. */
static size_t children_of(pid_t pid, pid_t *ret, size_t max)
{
	char path[400];
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		(void)snprintf(path, sizeof(path), "/proc/%d/task/%s/children", pid, e->d_name);
		FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "re");
		for (int one; f && n < max && fscanf(f, "%d", &one) == 1;)
			ret[n++] = one;
		if (f)
			(void)fclose(f);
	}
	if (d)
		(void)closedir(d);
	return n;
}

/* One of the children of the last in the line. False: it has none. */
static bool descend(struct line *l, unsigned *seed)
{
	pid_t pids[CHILDREN_MAX], parent = l->count ? l->pids[l->count - 1] : getpid();
	size_t n = children_of(parent, pids, CHILDREN_MAX);
	pid_t pid = n ? pids[(unsigned)rand_r(seed) % n] : 0;
	int fd = pid && l->count < DEPTH_MAX ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	if (fd < 0)
		return false;
	if (parent_of(pid) != parent) { /* it has ended, and another process has its number */
		close(fd);
		return false;
	}
	l->pids[l->count] = pid;
	l->fds[l->count++] = fd;
	return true;
}

/* The flags that a supervisor was started with (wall/linux/supervisor.c); -1: it is none. */
static long flags_of(pid_t pid)
{
	char path[64], text[64] = "";

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	FILE *f = fopen(path, "re");
	if (f)
		(void)fread(text, 1, sizeof(text) - 1, f);
	if (f)
		(void)fclose(f);
	return strcmp(text, "cordon-init") == 0 ? strtol(text + sizeof("cordon-init"), NULL, 10)
						: -1;
}

/* ---- the kill */

/* Which of the line is the last to end. Pid 1 ends with its supervisor, and with the interpreter of
 * a template; the kernel ends whatever is in its namespace before. So a place that a template forks
 * meanwhile has ended then, too. All others end alone. */
static unsigned last_of(const struct line *l, unsigned victim)
{
	long flags = flags_of(l->pids[0]);
	unsigned of_pid_1 = flags >= 0 && flags & PLANF_TEMPLATE ? 2 : 1;

	return flags >= 0 && victim <= of_pid_1 ? 1 : victim;
}

static bool has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, END_MS) == 1;
}

bool kills_one(unsigned *seed, unsigned depth)
{
	struct line l = { 0 };

	for (unsigned levels = 1 + (unsigned)rand_r(seed) % depth; l.count < levels;)
		if (!descend(&l, seed))
			break;
	unsigned victim = l.count - 1;
	if (l.count == 1)
		(void)descend(&l, seed);
	unsigned last = l.count ? last_of(&l, victim) : 0;
	bool is_good = true;
	/* A supervisor without a pid 1 has just begun, and nobody could tell the end of pid 1. */
	if (last < l.count) {
		atomic_fetch_add(&begun, 1);
		(void)syscall(SYS_pidfd_send_signal, l.fds[victim], SIGKILL, NULL, 0);
		is_good = has_ended(l.fds[victim]) && has_ended(l.fds[last]);
		atomic_fetch_add(&over, 1);
	}
	line_done(&l);
	return is_good;
}
