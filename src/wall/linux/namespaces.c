/* wall/linux/namespaces.c - see namespaces.h. */
#include "wall/linux/namespaces.h"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wall/linux/kernel.h"

static const struct {
	const char *name;
	unsigned long request; /* PIDFD_GET_*_NAMESPACE: Linux 6.11 */
} kinds[PLAN_NAMESPACES] = { { "user", _IO(0xff, 9) },  { "pid", _IO(0xff, 5) },
			     { "mnt", _IO(0xff, 3) },   { "net", _IO(0xff, 4) },
			     { "ipc", _IO(0xff, 2) },   { "uts", _IO(0xff, 10) },
			     { "cgroup", _IO(0xff, 1) } };

static uint64_t from_proc(const char *name)
{
	static const char dir[] = "/proc/self/ns/";
	char path[sizeof(dir) + 8];
	struct stat st;

	memcpy(path, dir, sizeof(dir));
	memcpy(path + sizeof(dir) - 1, name, strlen(name) + 1);
	return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* Several times cheaper than seven uncached files in /proc. */
static uint64_t from_pidfd(int pidfd, unsigned long request)
{
	int fd = pidfd < 0 ? -1 : ioctl(pidfd, (int)request, 0);
	struct stat st;

	if (fd < 0)
		return 0;
	uint64_t inode = fstat(fd, &st) == 0 ? (uint64_t)st.st_ino : 0;
	close(fd);
	return inode;
}

void namespaces_read(uint64_t ret[static PLAN_NAMESPACES])
{
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	for (int i = 0; i < PLAN_NAMESPACES; i++) {
		ret[i] = from_pidfd(pidfd, kinds[i].request);
		if (ret[i] == 0)
			ret[i] = from_proc(kinds[i].name);
	}
	if (pidfd >= 0)
		close(pidfd);
}
