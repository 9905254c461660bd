/* tests/soak/resources.c - see resources.h. */
#include "soak/resources.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/template.h"

/* A sanitizer keeps what was freed, and looks for leaks itself. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

static unsigned tests, failed;

static unsigned count_in(const char *dir, const char *prefix)
{
	DIR *d = opendir(dir);
	unsigned n = 0;

	for (struct dirent *f; d && (f = readdir(d));)
		n += f->d_name[0] != '.' && strncmp(f->d_name, prefix, strlen(prefix)) == 0;
	if (d)
		closedir(d);
	return n;
}

static unsigned count_words(const char *path)
{
	FILE *f = fopen(path, "re");
	unsigned n = 0;

	for (int c; f && (c = fgetc(f)) != EOF;)
		n += c == '\n' || c == ' ';
	if (f)
		fclose(f);
	return n;
}

static long resident_kb(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	char line[128] = "", *at = line;

	if (f) {
		if (fgets(line, sizeof(line), f))
			(void)strtol(line, &at, 10);
		fclose(f);
	}
	return strtol(at, NULL, 10) * (sysconf(_SC_PAGESIZE) / 1024);
}

struct resources resources_look(unsigned threads)
{
	char prefix[32], path[64];

	template_release_all();
	for (int i = 0; i < 300 && count_in("/proc/self/task", "") > threads; i++)
		usleep(100000);
	snprintf(prefix, sizeof(prefix), "%d-", (int)getpid());
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	return (struct resources){ .fds = count_in("/proc/self/fd", ""),
				   .groups = count_in("/sys/fs/cgroup/pids/cordon", prefix) +
					     count_in("/sys/fs/cgroup/cordon", prefix),
				   .children = count_words(path),
				   .mounts = count_words("/proc/self/mountinfo"),
				   .threads = count_in("/proc/self/task", ""),
				   .kb = resident_kb() };
}

void resources_check(bool good, const char *name, long was, long is)
{
	printf("%s %u - %s\n", good ? "ok" : "not ok", ++tests, name);
	if (!good)
		printf("# %ld before, %ld after\n", was, is);
	failed += !good;
}

void resources_compare(const struct resources *before, const struct resources *after, long slack_kb)
{
	resources_check(after->fds == before->fds, "no descriptor is left", before->fds,
			after->fds);
	resources_check(after->groups == 0, "no control group is left", 0, after->groups);
	resources_check(after->children == before->children, "no process is left", before->children,
			after->children);
	resources_check(after->threads == before->threads, "no thread is left", before->threads,
			after->threads);
	resources_check(after->mounts == before->mounts, "no mount is left", before->mounts,
			after->mounts);
	if (IS_SANITIZED)
		return;
	resources_check(after->kb < before->kb + slack_kb, "the host's memory stays", before->kb,
			after->kb);
}

int resources_end(void)
{
	printf("1..%u\n", tests);
	return failed != 0;
}
