/* inside/init/root.c - see root.h. The steps are data; this file applies them. */
#include "inside/init/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "wall/linux/kernel.h"

static int make_parents(char *path)
{
	for (char *p = path; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		if (p != path && mkdir(path, 0755) != 0 && errno != EEXIST) {
			int e = errno;
			*p = '/';
			return -e;
		}
	}
	return 0;
}

static int make_parents_of(const char *dst)
{
	char path[4096];
	size_t len = strlen(dst);

	if (len >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path, dst, len + 1);
	return make_parents(path);
}

/* Makes an empty file or directory. It may exist already, below an earlier read-only bind. */
static int make_empty(const char *dst, bool is_dir)
{
	int r = is_dir ? mkdir(dst, 0755) : mknod(dst, S_IFREG | 0444, 0);

	return r == 0 || errno == EEXIST ? 0 : -errno;
}

/* Makes a mount point of the source's type. */
static int make_place(const char *dst, bool is_dir)
{
	int r = make_empty(dst, is_dir);

	if (r != -ENOENT)
		return r;
	r = make_parents_of(dst);
	return r < 0 ? r : make_empty(dst, is_dir);
}

static int restrict_mount(const char *dst, uint32_t flags)
{
	struct mount_attr_args attr = { .attr_set = ATTR_NOSUID | ATTR_NODEV };

	if (flags & OPF_RO)
		attr.attr_set |= ATTR_RDONLY;
	if (flags & OPF_NOEXEC)
		attr.attr_set |= ATTR_NOEXEC;
	unsigned at = flags & OPF_RECURSIVE ? 0x8000 /* AT_RECURSIVE */ : 0;
	return syscall(SYS_mount_setattr, AT_FDCWD, dst, at, &attr, sizeof(attr)) != 0 ? -errno : 0;
}

static int source_path(const char *src, char *ret, size_t size)
{
	const size_t cut = sizeof(ROOT_SCRATCH) - 1;
	bool below = strncmp(src, ROOT_SCRATCH "/", cut + 1) == 0;
	int n = below ? snprintf(ret, size, ROOT_SCRATCH_FD_PATH "%s", src + cut)
		      : snprintf(ret, size, "%s", src);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* A mount made by the host, because only the host can map ids. */
static int move_made(const struct plan_op *op, const char *dst)
{
	int fd = (int)op->mode;
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	int r = make_place(dst, S_ISDIR(st.st_mode));
	if (r == 0 &&
	    syscall(429 /* move_mount */, fd, "", AT_FDCWD, dst, 4 /* F_EMPTY_PATH */) != 0)
		r = -errno;
	close(fd);
	return r < 0 ? r : restrict_mount(dst, op->flags);
}

static int apply_bind(const struct job *j, const struct plan_op *op)
{
	const char *dst = plan_text(j, op->dst);
	char src[4096];
	struct stat st;

	int r = source_path(plan_text(j, op->src), src, sizeof(src));
	if (r < 0)
		return r;

	if (op->flags & OPF_MADE)
		return move_made(op, dst);
	if (stat(src, &st) != 0)
		return op->flags & OPF_OPTIONAL ? 0 : -errno;
	r = make_place(dst, S_ISDIR(st.st_mode));
	if (r < 0)
		return r;
	unsigned long rec = op->flags & OPF_RECURSIVE ? MS_REC : 0;
	if (mount(src, dst, NULL, MS_BIND | rec, NULL) != 0)
		return -errno;
	return restrict_mount(dst, op->flags);
}

/* Another launch of a place has put something at this path or above it. */
static bool is_there(const struct plan_op *op, int e)
{
	return (op->flags & OPF_UNLESS) && (e == EEXIST || e == EROFS);
}

static int apply_file(const struct job *j, const struct plan_op *op)
{
	const char *dst = plan_text(j, op->dst), *bytes = plan_at(j, op->src);
	const int how = O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC;
	int r = 0, fd = kernel_open(dst, how, op->mode);

	if (fd < 0 && errno == ENOENT) {
		r = make_parents_of(dst);
		if (r < 0)
			return is_there(op, -r) ? 0 : r;
		fd = kernel_open(dst, how, op->mode);
	}
	if (fd < 0)
		return is_there(op, errno) ? 0 : -errno;
	for (size_t done = 0; done < op->size;) {
		ssize_t n = write(fd, bytes + done, op->size - done);
		if (n < 0) {
			r = -errno;
			break;
		}
		done += (size_t)n;
	}
	close(fd);
	return r;
}

static int apply_symlink(const struct plan_op *op, const char *src, const char *dst)
{
	if (symlink(src, dst) == 0)
		return 0;
	int r = errno == ENOENT ? make_parents_of(dst) : -errno;
	if (r == 0)
		r = symlink(src, dst) != 0 ? -errno : 0;
	return is_there(op, -r) ? 0 : r;
}

static int apply_op(const struct job *j, const struct plan_op *op)
{
	const char *dst = plan_text(j, op->dst), *src = plan_text(j, op->src);

	switch (op->kind) {
	case OP_MKDIR:
		return mkdir(dst, op->mode) != 0 && errno != EEXIST ? -errno : 0;
	case OP_SYMLINK:
		return apply_symlink(op, src, dst);
	case OP_FILE:
		return apply_file(j, op);
	case OP_BIND:
		return apply_bind(j, op);
	case OP_TMPFS:
		return mount("tmpfs", dst, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, src) ? -errno
											   : 0;
	default:
		return -EINVAL;
	}
}

/* The tmpfs is mounted on /home, so its tree `user` is /home/user; the other trees are bound to
 * their places. It is never unmounted, which would wait for an RCU grace period. The guest sees the
 * tmpfs's root as /home, where no Landlock rule lets it create anything. */
int root_workspace(struct job *j, const char *data, int *ret_fd)
{
	static const char *const trees[] = { "/home/user", "/home/tmp", "/home/workspace" };
	static const char *const places[] = { NULL, "/tmp", "/workspace" };
	static const mode_t modes[] = { 0755, 01777, 0755 };

	unsigned long noexec = j->plan->flags & PLANF_EXEC ? 0 : MS_NOEXEC;
	if (mount("workspace", "/home", "tmpfs", MS_NOSUID | MS_NODEV | noexec, data) != 0)
		return plan_fail(j, STAGE_WORKSPACE, 0, errno);
	int root = kernel_open("/home", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (root < 0)
		return plan_fail(j, STAGE_WORKSPACE, 1, errno);
	for (uint32_t i = 0; i < 3; i++)
		if (mkdir(trees[i], modes[i]) != 0 || chmod(trees[i], modes[i]) != 0 ||
		    (places[i] && mount(trees[i], places[i], NULL, MS_BIND, NULL) != 0))
			return plan_fail(j, STAGE_WORKSPACE, 2 + i, errno);
	*ret_fd = root;
	return 0;
}

static int copy_bytes(int from, const char *to, off_t size)
{
	int r = 0, fd = kernel_open(to, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);

	if (fd < 0)
		return -errno;
	for (off_t at = 0; r == 0 && at < size;)
		if (sendfile(fd, from, &at, (size_t)(size - at)) <= 0)
			r = errno ? -errno : -EIO;
	close(fd);
	return r;
}

/* The file is on a tmpfs that the workspace then covers, so it has no other name. */
int root_own_file(struct job *j, const char *path, int bytes)
{
	struct mount_attr_args ro = { .attr_set = ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV |
						  ATTR_NOEXEC };
	struct stat st;
	char data[64];

	errno = 0;
	if (fstat(bytes, &st) != 0 || !S_ISREG(st.st_mode))
		return plan_fail(j, STAGE_MOUNTS, UINT32_MAX - 8, errno ? errno : EBADF);
	(void)snprintf(data, sizeof(data), "size=%lld,nr_inodes=4,mode=500",
		       (long long)st.st_size + 4096);
	if (mount("own", "/home", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, data) != 0)
		return plan_fail(j, STAGE_MOUNTS, UINT32_MAX - 9, errno);
	int r = copy_bytes(bytes, "/home/own", st.st_size);
	if (r < 0)
		return plan_fail(j, STAGE_MOUNTS, UINT32_MAX - 10, -r);
	if (mount("/home/own", path, NULL, MS_BIND, NULL) != 0 ||
	    syscall(SYS_mount_setattr, AT_FDCWD, path, 0, &ro, sizeof(ro)) != 0)
		return plan_fail(j, STAGE_MOUNTS, UINT32_MAX - 11, errno);
	return 0;
}

enum { PROC_FLAGS = MS_NOSUID | MS_NODEV | MS_NOEXEC };
#define ONLY_PIDS ",subset=pid"

/* The guests of a place see each other's processes, which Landlock would hide. */
static const char *proc_data(const struct job *j, bool only_pids)
{
	if (j->plan->flags & PLANF_STAYS)
		return only_pids ? "hidepid=off" ONLY_PIDS : "hidepid=off";
	return only_pids ? "hidepid=invisible" ONLY_PIDS : "hidepid=invisible";
}

/* Makes the files read-only; binds of files below are then read-only too. */
static int protect_files(const char *files)
{
	struct mount_attr_args attr = { .attr_set = ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV |
						    ATTR_NOEXEC };

	if (mount(files, files, NULL, MS_BIND, NULL) != 0 ||
	    syscall(SYS_mount_setattr, AT_FDCWD, files, 0, &attr, sizeof(attr)) != 0)
		return -errno;
	return 0;
}

/* Opened while it is visible. Without it locks are refused sooner. Uses a free number, because in a
 * template any number may be the guest's own. */
void root_keep_locks(struct job *j, const char *place)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/locks", place);
	int fd = kernel_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, INIT_FD_END);
	j->locks_fd = moved < 0 ? 0 : moved;
	close(fd);
}

/* Binds over the kernel's files while these exist. A proc that shows only processes does not have
 * them, but the binds stay when proc is switched to that. */
static int bind_files(const struct job *j, const char *place, const char *files)
{
	static const char *const names[] = { PROC_FILES };
	char from[64], to[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		(void)snprintf(from, sizeof(from), "%s/%s", files, names[i]);
		(void)snprintf(to, sizeof(to), "%s/%s", place, names[i]);
		if (mount(from, to, NULL, MS_BIND, NULL) != 0)
			return -errno;
	}
	const char *data = proc_data(j, true);
	return mount(NULL, place, NULL, MS_REMOUNT | PROC_FLAGS, data) != 0 ? -errno : 0;
}

/* A session's share of its template's limits: to the kernel both are the same user. */
static int limit_session(const char *place)
{
	static const char *const limits[][2] = { { "max_inotify_instances", "4" },
						 { "max_inotify_watches", "512" } };
	char path[64];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(limits) / sizeof(*limits); i++) {
		const char *value = limits[i][1];

		(void)snprintf(path, sizeof(path), "%s/sys/user/%s", place, limits[i][0]);
		int fd = kernel_open(path, O_WRONLY | O_CLOEXEC, 0);
		if (fd < 0 && errno == ENOENT) /* a kernel without inotify */
			continue;
		if (fd < 0 || write(fd, value, strlen(value)) < 0)
			r = -errno;
		if (fd >= 0)
			close(fd);
	}
	return r;
}

int root_proc(struct job *j, const char *place, const char *files)
{
	const char *data = proc_data(j, !files);

	if (mount("proc", place, "proc", PROC_FLAGS, data) != 0)
		return plan_fail(j, STAGE_MOUNTS, UINT32_MAX, errno);
	if (files)
		root_keep_locks(j, place);
	int r = files && j->is_session ? limit_session(place) : 0;
	if (r < 0)
		return plan_fail(j, STAGE_NESTED, 2, -r);
	r = files ? bind_files(j, place, files) : 0;
	return r < 0 ? plan_fail(j, STAGE_MOUNTS, UINT32_MAX - 6, -r) : 0;
}

int root_pivot(struct job *j)
{
	struct mount_attr_args ro = { .attr_set = ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV };

	if (syscall(SYS_mount_setattr, AT_FDCWD, ".", 0, &ro, sizeof(ro)) != 0)
		return plan_fail(j, STAGE_PIVOT, 0, errno);
	if (syscall(SYS_pivot_root, ".", ".") != 0)
		return plan_fail(j, STAGE_PIVOT, 1, errno);
	return 0;
}

int root_leave(struct job *j)
{
	if (umount2(".", MNT_DETACH) != 0)
		return plan_fail(j, STAGE_PIVOT, 2, errno);
	if (chdir("/") != 0)
		return plan_fail(j, STAGE_PIVOT, 3, errno);
	return 0;
}

int root_apply(struct job *j, enum stage stage)
{
	const struct plan_op *ops = plan_at(j, j->plan->ops);

	for (uint32_t i = 0; i < j->plan->op_count; i++) {
		int r = apply_op(j, &ops[i]);
		if (r < 0)
			return plan_fail(j, stage, i, -r);
	}
	return 0;
}

int root_build(struct job *j)
{
	const char *data = plan_text(j, j->plan->root_data);

	if (data[0] && mount(NULL, ".", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, data) != 0)
		return plan_fail(j, STAGE_MOUNTS, UINT32_MAX - 5, errno);
	if (root_apply(j, STAGE_MOUNTS) < 0)
		return -1;
	close(ROOT_SCRATCH_FD);
	bool has_files = j->plan->flags & PLANF_PROC_FILES;
	int r = has_files ? protect_files(PROC_FILES_DIR) : 0;
	if (r < 0)
		return plan_fail(j, STAGE_MOUNTS, UINT32_MAX - 7, -r);
	/* While the host's /proc is still visible: otherwise the kernel refuses to mount a new one.
	 * For the same reason a template has no mounts in its own /proc, which its sessions must
	 * see. */
	bool binds = has_files && !(j->flags & PLANF_TEMPLATE);
	return root_proc(j, "proc", binds ? PROC_FILES_DIR : NULL);
}
