/* unit/wall/test_cgroup.c - CPU time from the control groups of each version, with files of
 * ours. */
#include "wall/linux/cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "harness/test.h"

static char dir[] = "/tmp/cordon-cgroup-XXXXXX";

static int folder(void)
{
	ASSERT(mkdtemp(dir));
	return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void put(const char *name, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	ASSERT_EQ(file_save(path, 0644, text, strlen(text), NULL), 0);
}

static void drop(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	ASSERT_EQ(unlink(path), 0);
}

TEST(cpu_time_of_each_version)
{
	int fd = folder();
	struct cgroup none = { 0 }, v2 = { .count = 1, .is_v2 = true, .dir_fds = { fd, -1, -1 } };
	struct cgroup v1 = { .count = 3, .has_cpu = true, .dir_fds = { -1, -1, fd } };
	struct cgroup without = { .count = 2, .dir_fds = { -1, -1, fd } };

	ASSERT(fd >= 0);
	ASSERT_EQ(cgroup_read_cpu(&none), 0);
	ASSERT_EQ(cgroup_read_cpu(&v2), 0);
	ASSERT_EQ(cgroup_read_cpu(&v1), 0); /* cpuacct is mounted elsewhere */
	put("cpu.stat", "usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\n");
	put("cpuacct.usage", "7654321000\n");
	ASSERT_EQ(cgroup_read_cpu(&v2), 1234567);
	ASSERT_EQ(cgroup_read_cpu(&v1), 7654321);
	ASSERT_EQ(cgroup_read_cpu(&without), 0);
	drop("cpu.stat");
	drop("cpuacct.usage");
	close(fd);
	ASSERT_EQ(rmdir(dir), 0);
}
