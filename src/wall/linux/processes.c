/* wall/linux/processes.c - see processes.h. The guest is the first child of the sandbox's pid 1;
 * its process clock covers all its threads. A control group that accounts CPU time counts
 * everything. Otherwise all processes below pid 1 are looked up in /proc, each with the time of
 * children that it has waited for. (That misses children of a process that ignores SIGCHLD.) */
#include "wall/linux/processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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

enum { STAT_PARENT = 4, STAT_REAPED = 16 };

/* Where a field of /proc/PID/stat begins; NULL: it has none. The name in field 2 may contain
 * anything, so fields are counted from its closing bracket. */
static const char *stat_field(pid_t pid, int number, char *text, size_t size)
{
	read_proc(pid, "stat", text, size);
	const char *p = strrchr(text, ')');

	for (int field = 2; p && field < number; field++)
		p = strchr(p + 1, ' ');
	return p;
}

/* CPU time of children that the process has waited for: fields 16 and 17. */
static uint64_t reaped_time(pid_t pid)
{
	char text[1024], *end = NULL;
	const char *p = stat_field(pid, STAT_REAPED, text, sizeof(text));

	if (!p)
		return 0;
	unsigned long long user = strtoull(p, &end, 10);
	unsigned long long system = strtoull(end, NULL, 10);
	return (user + system) * 1000000 / (unsigned long long)sysconf(_SC_CLK_TCK);
}

static bool is_child_of(pid_t pid, pid_t parent)
{
	char text[1024];
	const char *p = stat_field(pid, STAT_PARENT, text, sizeof(text));

	return p && strtol(p, NULL, 10) == parent;
}

/* Adds the children of one of its threads while the list has room. */
static unsigned add_children_of(pid_t pid, long thread, pid_t *list, unsigned count, unsigned size)
{
	char name[64], text[4096], *end = text;

	(void)snprintf(name, sizeof(name), "task/%ld/children", thread);
	read_proc(pid, name, text, sizeof(text));
	for (long child; count < size && (child = strtol(end, &end, 10)) > 0;)
		list[count++] = (pid_t)child;
	return count;
}

static unsigned add_children(pid_t pid, pid_t *list, unsigned count, unsigned size)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "/proc/%d/task", (int)pid);
	DIR *d = opendir(name);
	for (struct dirent *e; d && count < size && (e = readdir(d));)
		if (e->d_name[0] != '.')
			count = add_children_of(pid, strtol(e->d_name, NULL, 10), list, count,
						size);
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
	const struct linux_box *b = linux_box_whole(linux_box(box));
	pid_t list[COUNTED], init = linux_box_pid(&b->base);

	if (which == BOX_PROCESSES_PEAK)
		return cgroup_pids_peak(&b->cgroup);
	uint64_t tasks = which == BOX_TASKS_NOW ? cgroup_pids_now(&b->cgroup) : 0;
	if (tasks > 0)
		return tasks;
	return init <= 0 ? 0 : tree_list(init, list, enough < COUNTED ? (unsigned)enough : COUNTED);
}

/* Pid 1 and its guest, and the shell of a guest that is an agent. */
enum { ALONE = 2, WITH_SHELL = 3 };

static uint64_t sum_tree(pid_t init, uint64_t counted)
{
	pid_t list[COUNTED];
	unsigned count = tree_list(init, list, COUNTED);
	uint64_t reaped = reaped_time(init), us = reaped > counted ? reaped : counted;

	for (unsigned i = 1; i < count; i++)
		us += own_time(list[i]) + reaped_time(list[i]);
	return us;
}

/* Where there were never more than three processes and threads, and a shell is found, no other can
 * be there. And if it is the shell that was found before, then no other can have run or ended
 * since. False: there is no shell. */
static bool sum_with_shell(struct linux_box *b, pid_t init, uint64_t counted, uint64_t *ret)
{
	const pid_t guest = linux_box_guest_pid(b);
	pid_t children[2];

	if (b->shell_pid <= 0 || !is_child_of(b->shell_pid, guest)) {
		b->shell_pid = 0;
		if (add_children_of(guest, guest, children, 0, 2) != 1)
			return false;
		uint64_t reaped = reaped_time(init);
		b->ended_us = (reaped > counted ? reaped : counted) + reaped_time(guest) +
			      reaped_time(children[0]);
		b->shell_pid = children[0];
	}
	*ret = b->ended_us + own_time(guest) + own_time(b->shell_pid);
	return true;
}

/* The guests of a place are counted together: what a guest leaves behind is no longer below it. */
static uint64_t cpu_of_all(struct linux_box *guest)
{
	struct linux_box *b = guest->place ? guest->place : guest;
	uint64_t us = cgroup_read_cpu(&b->cgroup), counted = b->status->cpu_us;
	pid_t init = linux_box_pid(&b->base);

	if (us > 0)
		return us;
	if (init <= 0 || (!b->stays && linux_box_guest_pid(b) <= 0))
		return counted;
	/* Most executions start no process. Then a clock or two and one counter replace two dozen
	 * reads of /proc. */
	uint64_t most = b->stays ? 0 : cgroup_tasks_most(&b->cgroup);
	if (most == ALONE)
		return counted + own_time(linux_box_guest_pid(b));
	if (most == WITH_SHELL) {
		pthread_mutex_lock(&b->counting);
		bool is_all = sum_with_shell(b, init, counted, &us);
		pthread_mutex_unlock(&b->counting);
		if (is_all)
			return us;
	}
	return sum_tree(init, counted);
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
	const struct linux_box *b = linux_box(box), *whole = linux_box_whole(b);

	return is_stopped(whole->supervisor) || is_stopped(linux_box_pid(&whole->base)) ||
	       is_stopped(b->guest_pid);
}

pid_t processes_inner_pid(const struct box *box)
{
	const struct linux_box *b = linux_box(box);
	char text[4096];
	pid_t pid = b->place ? linux_box_pid(box) : b->guest_pid;

	if (pid <= 0)
		return 0;
	read_proc(pid, "status", text, sizeof(text));
	const char *line = strstr(text, "\nNSpid:");
	const char *end = line ? strchr(line + 1, '\n') : NULL;
	while (end && end > line && (end[-1] < '0' || end[-1] > '9'))
		end--;
	while (end && end > line && end[-1] >= '0' && end[-1] <= '9')
		end--;
	return end ? (pid_t)strtol(end, NULL, 10) : 0;
}

/* Whether it needs the signal: not one that has ended and waits to be reaped. */
static bool is_to_change(pid_t pid, bool frozen)
{
	char text[512];

	read_proc(pid, "stat", text, sizeof(text));
	const char *state = strrchr(text, ')');
	if (!state || state[1] != ' ' || state[2] == 'Z' || state[2] == 'X')
		return false;
	return (state[2] == 'T' || state[2] == 't') != frozen;
}

/* A process may start others while they are listed, so it looks again until all are stopped. Their
 * numbers are not used again meanwhile: pid 1 does not go, and a stopped process reaps nothing. */
int processes_freeze(struct box *box, bool frozen)
{
	enum { ROUNDS = 500, NAP_NS = 1000000 };
	const struct linux_box *b = linux_box_whole(linux_box(box));
	pid_t list[COUNTED], init = linux_box_pid(&b->base);
	bool is_done = false;

	if (init <= 0)
		return -ESRCH;
	for (int round = 0; round < ROUNDS && !is_done; round++) {
		unsigned count = tree_list(init, list, COUNTED);

		is_done = true;
		for (unsigned i = 1; i < count; i++)
			if (is_to_change(list[i], frozen)) {
				is_done = false;
				(void)kill(list[i], frozen ? SIGSTOP : SIGCONT);
			}
		if (!is_done)
			(void)nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
	}
	return is_done ? 0 : -EAGAIN;
}
