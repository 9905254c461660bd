/* inside/init/memory.c - see memory.h. Between two checks a guest can exceed the limit: this bounds
 * the harm, while a control group prevents it. Memory that no process has mapped cannot be seen, so
 * the filter refuses memory files if this check is in use (seal.c). */
#include "inside/init/memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wall/linux/kernel.h"

enum { TREE_MAX = 4096, SOON_MS = 20, LATER_MS = 100 };

static bool read_text(const char *path, char *ret, size_t size)
{
	int fd = kernel_open(path, O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0)
		return false;
	ssize_t n = read(fd, ret, size - 1);
	close(fd);
	ret[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static uint64_t field_kib(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	return p ? strtoull(p + strlen(name), NULL, 10) : 0;
}

/* Cheap: resident memory, with shared pages in full. Exact: with its share of them. Page tables
 * always count: they can be large without any resident page. */
static uint64_t process_kib(pid_t pid, bool exact)
{
	char path[64], text[4096];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (!read_text(path, text, sizeof(text)))
		return 0;
	uint64_t tables = field_kib(text, "\nVmPTE:");
	if (!exact)
		return tables + field_kib(text, "\nRssAnon:") + field_kib(text, "\nRssShmem:");
	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	if (!read_text(path, text, sizeof(text)))
		return 0;
	return tables + field_kib(text, "\nPss_Anon:") + field_kib(text, "\nPss_Shmem:");
}

/* Appends the children of all its threads. */
static unsigned add_children(pid_t pid, pid_t *list, unsigned count)
{
	char path[300], text[4096];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/children", pid, e->d_name);
		if (!read_text(path, text, sizeof(text)))
			continue;
		char *end = text;
		for (long child; count < TREE_MAX && (child = strtol(end, &end, 10)) > 0;)
			list[count++] = (pid_t)child;
	}
	if (d)
		closedir(d);
	return count;
}

unsigned memory_tree(pid_t root, pid_t *ret, unsigned size)
{
	unsigned count = 1;

	ret[0] = root;
	for (unsigned i = 0; i < count && size >= TREE_MAX; i++)
		count = add_children(ret[i], ret, count);
	return count;
}

static uint64_t tree_kib(pid_t root, bool exact, uint32_t *peak)
{
	static pid_t list[TREE_MAX];
	unsigned count = memory_tree(root, list, TREE_MAX);
	uint64_t sum = 0;

	if (count > *peak)
		*peak = count;
	for (unsigned i = 0; i < count; i++)
		sum += process_kib(list[i], exact);
	return sum;
}

static int look_at_tree(struct job *j, pid_t root)
{
	bool template = j->plan->flags & PLANF_TEMPLATE;
	uint32_t none = 0, *peak = template ? &none : &j->status->processes_peak;
	uint64_t limit = j->plan->memory_bytes / 1024, now = tree_kib(root, false, peak);

	if (now > limit)
		now = tree_kib(root, true, peak);
	if (now > j->status->memory_peak_kib)
		j->status->memory_peak_kib = now;
	if (now > limit) {
		/* Recorded first, so that a reader who sees the end also finds the reason. */
		j->status->memory_victims[j->status->memory_kills++ % STATUS_VICTIMS] = root;
		(void)kill(root, SIGKILL);
	}
	return now > limit / 4 ? SOON_MS : LATER_MS;
}

int memory_look(struct job *j, pid_t init)
{
	static pid_t list[TREE_MAX];
	int patience = LATER_MS;

	if (!(j->flags & PLANF_WATCH_MEMORY))
		return -1;
	if (!(j->flags & PLANF_TEMPLATE))
		return look_at_tree(j, init);
	/* Below pid 1 is the template, below that a pid 1 per session. */
	unsigned guests = add_children(init, list, 0);
	unsigned end = guests;
	for (unsigned i = 0; i < guests; i++)
		end = add_children(list[i], list, end);
	for (unsigned i = guests; i < end; i++) {
		int ms = look_at_tree(j, list[i]);
		patience = ms < patience ? ms : patience;
	}
	return patience;
}
