/* inside/init/no_userns_init.c - see no_userns_init.h. */
#include "inside/init/no_userns_init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside/init/memory.h"
#include "inside/init/root.h"
#include "wall/linux/kernel.h"

enum { ROUNDS = 2000 };

int no_userns_build(struct job *j, int *ret_fd)
{
	if (chdir(plan_text(j, j->plan->private_dir)) != 0)
		return plan_fail(j, STAGE_WORKSPACE, 10, errno);
	umask(022);
	if (root_apply(j, STAGE_WORKSPACE) < 0)
		return -1;
	*ret_fd = kernel_open("w", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	return *ret_fd < 0 ? plan_fail(j, STAGE_WORKSPACE, 11, errno) : 0;
}

/* Stops them first: a stopped process makes no more children while we look for the others. */
void no_userns_end(void)
{
	static pid_t list[4096];

	for (int round = 0; round < ROUNDS; round++) {
		unsigned count = memory_tree(getpid(), list, sizeof(list) / sizeof(*list));

		for (unsigned i = 1; i < count; i++)
			(void)kill(list[i], round % 2 == 0 ? SIGSTOP : SIGKILL);
		pid_t pid;
		while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			return;
		if (round % 2 == 1)
			(void)poll(NULL, 0, 1);
	}
}

/* One pass over a directory: removes files and empty directories. Returns true with the name of a
 * directory that is not empty, if there is one. */
static bool sweep(int fd, char *ret_name, size_t size)
{
	DIR *d = fdopendir(dup(fd));
	bool found = false;

	if (d)
		rewinddir(d);
	for (struct dirent *e; d && (e = readdir(d));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    unlinkat(fd, e->d_name, 0) == 0 || unlinkat(fd, e->d_name, AT_REMOVEDIR) == 0 ||
		    strlen(e->d_name) >= size)
			continue;
		if (errno == ENOTEMPTY || errno == EEXIST || errno == EACCES) {
			memcpy(ret_name, e->d_name, strlen(e->d_name) + 1);
			found = true;
		}
	}
	if (d)
		closedir(d);
	return found;
}

static int enter(int fd, const char *name)
{
	/* The guest is dead, so nothing can become a link between these calls. */
	(void)fchmodat(fd, name, 0700, 0);
	return openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Descends into directories with contents and ascends from empty ones: any depth with one
 * descriptor. */
static void remove_below(int top)
{
	char name[256];
	unsigned depth = 0;
	int fd = fcntl(top, F_DUPFD_CLOEXEC, 3);

	while (fd >= 0) {
		int next = -1;

		if (sweep(fd, name, sizeof(name))) {
			next = enter(fd, name);
			depth++;
		} else if (depth > 0) {
			next = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			depth--;
		}
		close(fd);
		fd = next;
	}
}

void no_userns_remove(const struct job *j)
{
	const char *path = plan_text(j, j->plan->private_dir);
	int fd = kernel_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

	if (fd < 0)
		return;
	remove_below(fd);
	close(fd);
	(void)rmdir(path);
}
