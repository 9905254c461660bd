/* tests/behaviour/belongings.c - see belongings.h. */
#include "belongings.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/test.h"
#include "session/template.h"

enum { WAIT_MS = 60000 };

static unsigned count_entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned count = 0;

	for (struct dirent *e; d && (e = readdir(d));)
		count += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return count;
}

static unsigned count_children(void)
{
	char path[64], self[16];
	unsigned count = 0;
	DIR *d = opendir("/proc");

	snprintf(self, sizeof(self), "%d", (int)getpid());
	for (struct dirent *e; d && (e = readdir(d));) {
		char line[512], *end;

		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%.16s/stat", e->d_name);
		FILE *f = fopen(path, "re");
		if (f && fgets(line, sizeof(line), f) && (end = strrchr(line, ')')) &&
		    strtol(end + 3, NULL, 10) == (long)getpid())
			count++;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return count;
}

static char group_prefix[32];
static unsigned group_count;

static int count_group(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	if (type == FTW_D)
		group_count += strncmp(path + at->base, group_prefix, strlen(group_prefix)) == 0;
	return 0;
}

struct belongings count_belongings(void)
{
	struct belongings b;

	snprintf(group_prefix, sizeof(group_prefix), "%d-", (int)getpid());
	group_count = 0;
	(void)nftw("/sys/fs/cgroup", count_group, 16, FTW_PHYS);
	b.groups = group_count;
	b.descriptors = count_entries("/proc/self/fd");
	b.threads = count_entries("/proc/self/task");
	b.children = count_children();
	return b;
}

void must_be_as_before(const struct belongings *before)
{
	deadline_ns enough = deadline_after_ms(WAIT_MS);

	template_release_all();
	struct belongings after = count_belongings();
	/* A thread that was waited for is still listed until the kernel is done with it. */
	while (after.threads > before->threads && !deadline_is_over(enough))
		after = count_belongings();
	ASSERT_EQ(after.descriptors, before->descriptors);
	ASSERT_EQ(after.threads, before->threads);
	ASSERT_EQ(after.children, before->children);
	ASSERT_EQ(after.groups, before->groups);
}
