/* wall/linux/processes.c - see processes.h. The guest is the first child of the sandbox's pid 1;
 * its process clock covers all its threads. A control group that accounts CPU time counts
 * everything. Otherwise all processes below pid 1 are looked up in /proc, each with the time of
 * children that it has waited for. (That misses children of a process that ignores SIGCHLD.) */
#include "wall/linux/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "wall/linux/linux_box.h"

/* Further processes are not counted; each still has its own RLIMIT_CPU. */
enum { COUNTED = 4096 };

/* The kernel's clock id for "CPU clock of that process". */
static clockid_t clock_of(pid_t pid)
{
	return (clockid_t)((~(unsigned)pid << 3) | 2);
}

static uint64_t own_time(pid_t pid)
{
	struct timespec t;

	if (pid <= 0 || clock_gettime(clock_of(pid), &t) != 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* A small file of /proc as text; empty if the process is gone. */
static void read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	char path[320];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
	text[n > 0 ? n : 0] = '\0';
}

/* CPU time of children that the process has waited for: fields 16 and 17 of /proc/PID/stat. The
 * name in field 2 may contain anything, so fields are counted from its closing bracket. */
static uint64_t reaped_time(pid_t pid)
{
	char text[1024];
	const char *p;
	unsigned long long user = 0, system = 0;

	read_proc(pid, "stat", text, sizeof(text));
	p = strrchr(text, ')');
	for (int field = 2; p && field < 16; field++)
		p = strchr(p + 1, ' ');
	if (!p)
		return 0;
	char *end = NULL;
	user = strtoull(p, &end, 10);
	system = strtoull(end, NULL, 10);
	return (user + system) * 1000000 / (unsigned long long)sysconf(_SC_CLK_TCK);
}

/* Adds the children of all its threads while the list has room. */
static unsigned add_children(pid_t pid, pid_t *list, unsigned count, unsigned size)
{
	char name[300], text[4096];

	(void)snprintf(name, sizeof(name), "/proc/%d/task", (int)pid);
	DIR *d = opendir(name);
	for (struct dirent *e; d && count < size && (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(name, sizeof(name), "task/%s/children", e->d_name);
		read_proc(pid, name, text, sizeof(text));
		char *end = text;
		for (long child; count < size && (child = strtol(end, &end, 10)) > 0;)
			list[count++] = (pid_t)child;
	}
	if (d)
		closedir(d);
	return count;
}

/* Not recursive, because the guest decides how deep the tree is. */
static unsigned tree_list(pid_t pid, pid_t *list, unsigned size)
{
	unsigned count = 1;

	list[0] = pid;
	for (unsigned i = 0; i < count && count < size; i++)
		count = add_children(list[i], list, count, size);
	return count;
}

uint64_t processes_count(struct box *box, enum box_processes which, uint64_t enough)
{
	pid_t list[COUNTED], init = linux_box_pid(box);

	if (which == BOX_PROCESSES_PEAK)
		return cgroup_pids_peak(&linux_box(box)->cgroup);
	return init <= 0 ? 0 : tree_list(init, list, enough < COUNTED ? (unsigned)enough : COUNTED);
}

static uint64_t cpu_of_all(struct linux_box *b)
{
	uint64_t us = cgroup_read_cpu(&b->cgroup), counted = b->status->cpu_us, reaped;
	pid_t list[COUNTED], init = linux_box_pid(&b->base);

	if (us > 0)
		return us;
	if (linux_box_guest_pid(b) <= 0)
		return counted;
	/* Most executions start no process. Then one clock and one counter replace two dozen reads
	 * of /proc. */
	if (cgroup_had_no_others(&b->cgroup))
		return counted + own_time(linux_box_guest_pid(b));
	unsigned count = tree_list(init, list, COUNTED);
	reaped = reaped_time(init);
	us = reaped > counted ? reaped : counted;
	for (unsigned i = 1; i < count; i++)
		us += own_time(list[i]) + reaped_time(list[i]);
	return us;
}

uint64_t processes_cpu_us(struct box *box, enum box_cpu of)
{
	struct linux_box *b = linux_box(box);

	switch (of) {
	case BOX_CPU_GUEST:
		return own_time(linux_box_guest_pid(b));
	case BOX_CPU_COUNTED:
		return cgroup_read_cpu(&b->cgroup);
	default:
		return cpu_of_all(b);
	}
}

static bool is_stopped(pid_t pid)
{
	char text[512];

	if (pid <= 0)
		return false;
	read_proc(pid, "stat", text, sizeof(text));
	const char *state = strrchr(text, ')');
	return state && state[1] == ' ' && (state[2] == 'T' || state[2] == 't');
}

/* The supervisor, pid 1 and the guest, if known. */
bool processes_are_stopped(const struct box *box)
{
	const struct linux_box *b = linux_box(box);

	return is_stopped(b->supervisor) || is_stopped(linux_box_pid(box)) ||
	       is_stopped(b->guest_pid);
}
