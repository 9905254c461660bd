/* session/cputime.c - see cputime.h. The guest is the first child of the sandbox's pid 1; its
 * process clock counts all its threads, and pid 1 counts what it has reaped. Where the guest is an
 * agent, its children do the work: they are looked up in /proc, generation by generation. */
#include "session/cputime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <fcntl.h>

#include "base/cleanup.h"

/* More than that is not looked at: the limit of each process holds without us. */
enum { GENERATIONS = 3, CHILDREN = 64, COUNTED = 4096 };

/* The kernel's number for "CPU clock of that process". */
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

/* A small file of /proc as text; empty when the process is gone. */
static void read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
	text[n > 0 ? n : 0] = '\0';
}

/* Of children that it has waited for; the fields 16 and 17, counted from the name's closing
 * bracket. */
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

static uint64_t tree_time(pid_t pid, int generations)
{
	char name[64], text[1024];
	uint64_t us = own_time(pid) + reaped_time(pid);

	if (generations == 0)
		return us;
	(void)snprintf(name, sizeof(name), "task/%d/children", (int)pid);
	read_proc(pid, name, text, sizeof(text));
	const char *p = text;
	for (int i = 0; i < CHILDREN && *p; i++) {
		char *end = NULL;
		pid_t child = (pid_t)strtol(p, &end, 10);

		if (end == p || child <= 0)
			break;
		us += tree_time(child, generations - 1);
		p = *end ? end + 1 : end;
	}
	return us;
}

/* Its children, as far as there is room in the list. */
static unsigned add_children(pid_t pid, pid_t *list, unsigned count, unsigned size)
{
	char name[64], text[1024];

	(void)snprintf(name, sizeof(name), "task/%d/children", (int)pid);
	read_proc(pid, name, text, sizeof(text));
	for (const char *p = text; count < size && *p;) {
		char *end = NULL;
		pid_t child = (pid_t)strtol(p, &end, 10);

		if (end == p || child <= 0)
			break;
		list[count++] = child;
		p = *end ? end + 1 : end;
	}
	return count;
}

/* One after the other: how deep the tree is, is the guest's to say. */
static unsigned tree_count(pid_t pid, unsigned enough)
{
	pid_t list[COUNTED] = { pid };
	unsigned count = 1, size = enough < COUNTED ? enough : COUNTED;

	for (unsigned i = 0; i < count && count < size; i++)
		count = add_children(list[i], list, count, size);
	return count;
}

unsigned cputime_processes(struct box *b, unsigned enough)
{
	pid_t pid = box_guest_pid(b), init;
	char text[1024];

	if (pid <= 0)
		return 0;
	/* What has lost its parent is a child of pid 1: its own parent is the fourth field. */
	read_proc(pid, "stat", text, sizeof(text));
	const char *p = strrchr(text, ')');
	init = p && strlen(p) > 4 ? (pid_t)strtol(p + 4, NULL, 10) : 0;
	return tree_count(init > 1 ? init : pid, enough);
}

uint64_t cputime_of(struct box *b, bool is_agent)
{
	pid_t pid = box_guest_pid(b);
	uint64_t us = box_status(b)->cpu_us;

	if (pid <= 0)
		return us;
	return us + (is_agent ? tree_time(pid, GENERATIONS) : own_time(pid));
}
