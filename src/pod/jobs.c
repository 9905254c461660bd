/* pod/jobs.c - what a session's shell has running, as /proc tells it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "jobs.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FIELD_SESSION = 6, FIELD_BEGAN = 22 }; /* of proc(5)'s stat; the name is the second */
enum { MAX_ROUNDS = 50 }; /* against those that begin others while they are killed */

uint64_t jobs_now(void)
{
	struct timespec t;
	uint64_t per_second = (uint64_t)sysconf(_SC_CLK_TCK);

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * per_second + (uint64_t)t.tv_nsec * per_second / 1000000000;
}

/* Dead already, and waiting for its parent to look. */
static bool is_over(const char *line)
{
	const char *at = strrchr(line, ')');

	return !at || !at[1] || at[2] == 'Z' || at[2] == 'X';
}

/* A number of the line; a name can hold anything, so fields are counted from its end. */
static uint64_t field(const char *line, int number)
{
	const char *at = strrchr(line, ')');

	for (int i = 2; at && i < number; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

struct wanted {
	pid_t shell;
	uint64_t since;
	bool is_shared;
};

static bool kill_one(pid_t pid, const struct wanted *w)
{
	char path[64], line[1024];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, line, sizeof line - 1);
	close(fd);
	line[n > 0 ? n : 0] = 0;
	if (field(line, FIELD_BEGAN) < w->since || is_over(line) ||
	    (w->is_shared && field(line, FIELD_SESSION) != (uint64_t)w->shell))
		return false;
	return kill(pid, SIGKILL) == 0;
}

static bool kill_all(const struct wanted *w)
{
	DIR *all = opendir("/proc");
	struct dirent *entry;
	bool has_killed = false;

	while (all && (entry = readdir(all))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 1 && pid != w->shell && pid != getpid() && kill_one(pid, w))
			has_killed = true;
	}
	if (all)
		closedir(all);
	return has_killed;
}

void jobs_kill(pid_t shell, uint64_t since, bool is_shared)
{
	const struct wanted w = { shell, since, is_shared };

	for (int i = 0; i < MAX_ROUNDS && kill_all(&w); i++)
		;
}
