/* inside/init/family.c - see family.h. Only pid 1 of a place calls this: its proc shows all
 * processes of the place. */
#include "inside/init/family.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wall/linux/kernel.h"

enum { ROUNDS = 64 };

struct process {
	pid_t pid, parent, session;
	unsigned long long born; /* with the pid it names a process for all time */
	bool is_ours, is_stopped;
};

struct list {
	struct process all[FAMILY_MOST]; /* by pid */
	unsigned count;
};

/* The fields after the name, which may contain anything; NULL: there is no such process. */
static char *read_fields(pid_t pid, char *text, size_t size)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = kernel_open(path, O_RDONLY | O_CLOEXEC, 0);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	char *p = strrchr(text, ')');
	return p && strlen(p) >= 4 ? p : NULL;
}

bool family_is_gone(pid_t pid)
{
	char text[1024];
	const char *p = read_fields(pid, text, sizeof(text));

	return !p || p[2] == 'Z' || p[2] == 'X';
}

static bool read_process(pid_t pid, struct process *ret)
{
	char text[1024], *p = read_fields(pid, text, sizeof(text));

	if (!p)
		return false;
	*ret = (struct process){ .pid = pid };
	ret->parent = (pid_t)strtol(p + 4, &p, 10);
	(void)strtol(p, &p, 10); /* its process group */
	ret->session = (pid_t)strtol(p, &p, 10);
	for (int field = 7; field < 22; field++)
		(void)strtoull(p, &p, 10);
	ret->born = strtoull(p, &p, 10);
	return true;
}

/* False: too many. The kernel lists them by pid. */
static bool look(struct list *l)
{
	DIR *d = opendir("/proc");
	bool fits = d != NULL;

	l->count = 0;
	for (struct dirent *e; fits && (e = readdir(d));) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		fits = l->count < FAMILY_MOST;
		if (fits && pid > 1 && read_process(pid, &l->all[l->count]))
			l->count++;
	}
	if (d)
		closedir(d);
	return fits;
}

static struct process *find(struct list *l, pid_t pid)
{
	unsigned from = 0, to = l->count;

	while (from < to) {
		unsigned middle = (from + to) / 2;

		if (l->all[middle].pid == pid)
			return &l->all[middle];
		if (l->all[middle].pid < pid)
			from = middle + 1;
		else
			to = middle;
	}
	return NULL;
}

/* Most children have larger numbers than their parents, so few passes are needed. */
static void mark(struct list *l, pid_t leader)
{
	for (bool is_new = true; is_new;) {
		is_new = false;
		for (unsigned i = 0; i < l->count; i++) {
			struct process *p = &l->all[i], *parent = find(l, p->parent);

			if (p->is_ours)
				continue;
			p->is_ours = p->pid == leader || p->session == leader ||
				     (parent && parent->is_ours);
			is_new = is_new || p->is_ours;
		}
	}
}

/* A process with a pending signal cannot fork. So a look that finds only processes that were
 * stopped before has found them all. */
static bool stop(struct list *now, struct list *before)
{
	bool is_new = false;

	for (unsigned i = 0; i < now->count; i++) {
		struct process *p = &now->all[i], *known = find(before, p->pid);

		if (!p->is_ours)
			continue;
		p->is_stopped = known && known->is_stopped && known->born == p->born;
		if (p->is_stopped)
			continue;
		(void)kill(p->pid, SIGSTOP);
		p->is_stopped = is_new = true;
	}
	return is_new;
}

bool family_end(pid_t leader, pid_t *ret, unsigned *ret_count)
{
	static struct list lists[2];
	unsigned now = 0, count = 0;
	bool is_new = true;

	lists[1].count = 0;
	for (int round = 0; is_new && round < ROUNDS; round++) {
		now = (unsigned)round % 2;
		if (!look(&lists[now]))
			return false;
		mark(&lists[now], leader);
		is_new = stop(&lists[now], &lists[1 - now]);
	}
	if (is_new)
		return false;
	for (unsigned i = 0; i < lists[now].count; i++)
		if (lists[now].all[i].is_ours) {
			(void)kill(lists[now].all[i].pid, SIGKILL);
			ret[count++] = lists[now].all[i].pid;
		}
	*ret_count = count;
	return true;
}
