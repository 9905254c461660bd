/* wall/linux/idmap.c - see idmap.h. Never used for files of root: a setuid file that the code makes
 * there would belong to root. */
#include "wall/linux/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "wall/linux/kernel.h"

enum { TREE_CLONE = 1, RECURSIVE = 0x8000, EMPTY_PATH = 0x1000 };

static int write_map(pid_t pid, const char *file, unsigned long from, unsigned long to)
{
	char path[64], line[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	snprintf(line, sizeof(line), "%lu %lu 1", from, to);
	cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, line, strlen(line)) < 0 ? -errno : 0;
}

/* A user namespace defines the id map. A child holds the namespace until we have its descriptor. */
static int open_maps(const struct stat *st, uid_t uid, gid_t gid, int *ret_fd)
{
	int made[2], held[2], r = 0;
	char byte, path[64];

	if (pipe2(made, O_CLOEXEC) != 0)
		return -errno;
	if (pipe2(held, O_CLOEXEC) != 0) {
		r = -errno;
		close(made[0]);
		close(made[1]);
		return r;
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(held[1]);
		if (unshare(CLONE_NEWUSER) == 0 && write(made[1], "1", 1) == 1)
			(void)!read(held[0], &byte, 1); /* until our parent is done or dead */
		_exit(0);
	}
	close(made[1]);
	close(held[0]);
	if (pid < 0)
		r = -errno;
	else if (read(made[0], &byte, 1) != 1)
		r = -EPERM;
	if (r == 0)
		r = write_map(pid, "uid_map", st->st_uid, uid);
	if (r == 0)
		r = write_map(pid, "gid_map", st->st_gid, gid);
	if (r == 0) {
		snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
		*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
		r = *ret_fd < 0 ? -errno : 0;
	}
	close(made[0]);
	close(held[1]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r;
}

int idmap_open(const char *path, uid_t uid, gid_t gid, int *ret_fd, struct cordon_error **reterr)
{
	cleanup_close int maps = -1, tree = -1;
	struct stat st;

	if (stat(path, &st) != 0)
		return err_errno(reterr, errno, "mount '%s'", path);
	/* The sandbox's own, or writable for everyone. */
	if (st.st_uid == uid || (st.st_uid == 0 && (st.st_mode & S_IWOTH))) {
		*ret_fd = -1;
		return 0;
	}
	if (st.st_uid == 0)
		return err_set(reterr, CORDON_INVALID,
			       "'%s' cannot be mounted writable, because it belongs to root; "
			       "remedy: a directory of another user, or mode snapshot",
			       path);
	/* New files get a group too, which must not be root's. And without a map for the
	 * directory's group no file could be created. */
	if (st.st_gid == 0)
		return err_set(reterr, CORDON_INVALID,
			       "'%s' cannot be mounted writable, because its group is root; "
			       "remedy: chgrp it to a group of its owner, or mode snapshot",
			       path);
	int r = open_maps(&st, uid, gid, &maps);
	if (r < 0)
		return err_errno(reterr, -r, "map the owner of '%s'", path);
	tree = (int)syscall(428 /* open_tree */, AT_FDCWD, path,
			    TREE_CLONE | RECURSIVE | O_CLOEXEC);
	struct mount_attr_args attr = { .attr_set = 0x100000 /* IDMAP */,
					.userns_fd = (uint64_t)maps };
	if (tree < 0 ||
	    syscall(SYS_mount_setattr, tree, "", EMPTY_PATH | RECURSIVE, &attr, sizeof(attr)) != 0)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "'%s' cannot be mounted writable: it belongs to uid %u, and its "
			       "file system cannot map ids (%s); remedy: a "
			       "directory on another file system, or mode snapshot",
			       path, st.st_uid, strerror(errno));
	*ret_fd = TAKE_FD(tree);
	return 0;
}
