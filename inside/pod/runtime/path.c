/* inside/pod/runtime/path.c - see path.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/path.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "inside/pod/runtime/facts.h"
#include "inside/pod/runtime/signals.h"
#include "inside/pod/runtime/toolbox.h"

#define PROC_MAGIC 0x9fa0

/* EAGAIN: something was renamed or mounted while a ".." was looked up, anywhere on the machine.
 * ELOOP: the kernel begins a lookup again if it meets a mount on its way, and counts the links of
 * both. Neither says anything about the path, so it is tried again; a true loop is found soon. */
static int64_t open_by(int dirfd, const char *path, const struct open_how *how)
{
	const int tries = 16;
	int64_t fd = -EAGAIN;

	for (int i = 0; i < tries && (fd == -EAGAIN || fd == -ELOOP); i++)
		fd = signals_call(SYS_openat2, dirfd, (long)path, (long)how, sizeof *how, 0, 0);
	return fd;
}

static int open_beneath(const struct w2c_sys *p, const char *path, int flags, int mode)
{
	struct open_how how = { .flags = (uint64_t)(unsigned)flags,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	if (flags & (O_CREAT | __O_TMPFILE))
		how.mode = (uint64_t)(mode & 07777);
	return (int)open_by(p->fds[PRIVATE_ROOT], path, &how);
}

/* The guest's name of a directory: its real path without the root's. */
static int strip_root(const struct w2c_sys *p, char buf[PATH_MAX])
{
	size_t n = strlen(p->root);

	if (strncmp(buf, p->root, n) != 0 || (buf[n] && buf[n] != '/'))
		return -ENOENT;
	memmove(buf, buf + n, strlen(buf + n) + 1);
	if (!buf[0])
		memcpy(buf, "/", 2);
	return 0;
}

static int directory_name(const struct w2c_sys *p, int dirfd, char buf[PATH_MAX])
{
	char link[32];
	ssize_t n;

	if (dirfd == AT_FDCWD)
		return getcwd(buf, PATH_MAX) ? strip_root(p, buf) : -errno;
	if (dirfd < 0)
		return -EBADF;
	snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
	n = readlink(link, buf, PATH_MAX - 1);
	if (n < 0)
		return errno == ENOENT ? -EBADF : -errno;
	buf[n] = 0;
	if (buf[0] != '/')
		return -ENOTDIR;
	return strip_root(p, buf);
}

int path_cwd(const struct w2c_sys *p, char buf[PATH_MAX])
{
	int r;

	if (!getcwd(buf, PATH_MAX))
		return -errno;
	r = p->rooted ? strip_root(p, buf) : 0;
	return r ? r : (int)strlen(buf);
}

/* Makes the name absolute, beneath the root. */
static int absolute(const struct w2c_sys *p, int dirfd, const char *path, char buf[PATH_MAX])
{
	size_t n = 0;
	int r;

	if (path[0] != '/') {
		r = directory_name(p, dirfd, buf);
		if (r)
			return r;
		n = strlen(buf);
		if (n + 1 + strlen(path) >= PATH_MAX)
			return -ENAMETOOLONG;
		buf[n++] = '/';
	}
	memcpy(buf + n, path, strlen(path) + 1);
	return 0;
}

/* /dev/fd/N and similar names stand for a descriptor of the guest; N or -1. The kernel would follow
 * the link in /proc as one of this process. */
static int named_descriptor(const struct w2c_sys *p, const char *path)
{
	static const char *const dirs[] = { "/dev/fd/", "/proc/self/fd/" };
	static const char *const std[] = { "/dev/stdin", "/dev/stdout", "/dev/stderr" };

	for (int i = 0; i < 3; i++)
		if (!strcmp(path, std[i]))
			return i;
	for (size_t i = 0; i < 2; i++) {
		size_t n = strlen(dirs[i]);
		char *end;
		long fd;

		if (strncmp(path, dirs[i], n) != 0 || path[n] < '0' || path[n] > '9')
			continue;
		fd = strtol(path + n, &end, 10);
		if (!*end && fd < p->fd_limit)
			return (int)fd;
	}
	return -1;
}

/* Without a sandbox there is no /dev beneath the root. These devices are the same everywhere. */
static bool is_device(const struct w2c_sys *p, const char *path)
{
	static const char *const names[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
					     "/dev/urandom" };

	for (size_t i = 0; p->rooted && i < sizeof names / sizeof *names; i++)
		if (!strcmp(path, names[i]))
			return true;
	return false;
}

static int place_final(const struct w2c_sys *p, const char *path, struct place *ret)
{
	int fd = open_beneath(p, path, O_PATH | O_CLOEXEC, 0);

	if (fd < 0)
		return fd;
	ret->owned = fd;
	ret->followed = true;
	ret->dirfd = AT_FDCWD;
	snprintf(ret->buf, sizeof ret->buf, "/proc/self/fd/%d", fd);
	ret->path = ret->buf;
	return 0;
}

static int place_parent(const struct w2c_sys *p, char *path, struct place *ret)
{
	size_t n = strlen(path);
	char *slash;

	/* A name that ends in a slash, "." or ".." is a directory, never a link. */
	slash = strrchr(path, '/');
	if (!slash[1] || !strcmp(slash, "/.") || !strcmp(slash, "/..")) {
		char *end = path + n;

		while (end > path + 1 && end[-1] == '/')
			end--;
		if (end == path + 1 || end[-1] == '.')
			return place_final(p, path, ret);
		*end = 0;
		slash = strrchr(path, '/');
	}
	memmove(ret->buf, slash + 1, strlen(slash + 1) + 1);
	slash[slash == path] = 0;
	ret->owned = open_beneath(p, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (ret->owned < 0)
		return ret->owned;
	ret->dirfd = ret->owned;
	ret->path = ret->buf;
	return 0;
}

int path_place(const struct w2c_sys *p, uint64_t dirfd, uint64_t at, enum path_last last,
	       struct place *ret)
{
	char full[PATH_MAX], link[32] = "";
	int named, r = guest_path(p, at, ret->buf);

	if (r)
		return r;
	ret->owned = -1;
	ret->path = toolbox_place(p, ret->buf, link, &ret->followed);
	if (ret->followed) {
		ret->dirfd = AT_FDCWD;
		memcpy(ret->buf, link, sizeof link);
		ret->path = ret->buf;
		return 0;
	}
	if (facts_is(ret->path)) {
		ret->dirfd = AT_FDCWD;
		ret->path = FACTS_MARK;
		return 0;
	}
	ret->dirfd = guest_int(dirfd) == AT_FDCWD ? AT_FDCWD : guest_fd(p, dirfd);
	named = named_descriptor(p, ret->path);
	if (named >= 0) {
		snprintf(ret->buf, sizeof ret->buf, "/proc/self/fd/%d", named);
		ret->path = ret->buf;
		return 0;
	}
	if (!p->rooted || is_device(p, ret->path))
		return 0;
	if (!ret->path[0])
		return -ENOENT;
	r = absolute(p, ret->dirfd, ret->path, full);
	if (r)
		return r;
	r = last == PATH_FOLLOW ? place_final(p, full, ret) : place_parent(p, full, ret);
	if (r)
		ret->owned = -1;
	return r;
}

bool path_may_run(const struct stat *st)
{
	uid_t uid = geteuid();
	mode_t bits = !uid                      ? 0111
		      : st->st_uid == uid       ? 0100
		      : st->st_gid == getegid() ? 0010
						: 0001;

	return S_ISREG(st->st_mode) && (st->st_mode & bits);
}

void path_done(struct place *place)
{
	if (place->owned >= 0)
		close(place->owned);
	place->owned = -1;
}

void path_find_proc(struct w2c_sys *p)
{
	struct statfs fs;
	struct stat st;

	if (!statfs("/proc", &fs) && fs.f_type == PROC_MAGIC && !stat("/proc", &st))
		p->proc_dev = st.st_dev;
}

/* The guest may read files of /proc that describe processes, but nothing that gives access to one:
 * /proc/self/mem is this process, including its code. */
static bool is_harmless_proc(int fd, int flags)
{
	static const char *const names[] = {
		"cgroup",    "cmdline",   "comm",     "cpuinfo", "filesystems", "io",
		"limits",    "loadavg",   "meminfo",  "mounts",  "mountinfo",   "self",
		"stat",      "statm",     "status",   "uptime",  "version",     "wchan",
		"oom_score", "children",  "sched",    "net",     "pid_max",     "overcommit_memory",
		"ostype",    "osrelease", "hostname",
	};
	char link[32], path[PATH_MAX];
	const char *base;
	struct stat st;
	ssize_t n;

	if (!fstat(fd, &st) && S_ISDIR(st.st_mode))
		return true;
	if ((flags & O_ACCMODE) != O_RDONLY)
		return false;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof path - 1);
	if (n < 0)
		return false;
	path[n] = 0;
	base = strrchr(path, '/');
	for (size_t i = 0; base && i < sizeof names / sizeof *names; i++)
		if (!strcmp(base + 1, names[i]))
			return true;
	return false;
}

/* Gives an opened descriptor to the guest, or closes it. */
static int64_t admit(struct w2c_sys *p, int fd, int flags)
{
	struct stat st;

	if (fd < 0)
		return fd;
	fd = guest_admit(p, fd);
	if (fd < 0)
		return fd;
	if (p->proc_dev && !fstat(fd, &st) && st.st_dev == p->proc_dev &&
	    !is_harmless_proc(fd, flags)) {
		close(fd);
		return -EACCES;
	}
	return fd;
}

#define OPEN_FLAGS                                                                                 \
	(O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_DSYNC |     \
	 O_SYNC | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME | O_PATH | __O_TMPFILE |        \
	 O_LARGEFILE | 0100000)

/* Reopens a descriptor of the guest by its name. A socket or the other end of a pipe cannot be
 * reopened; then it is duplicated. */
static int open_again(int named, int flags)
{
	char link[32];
	int fd;

	snprintf(link, sizeof link, "/proc/self/fd/%d", named);
	fd = (int)signals_call(SYS_openat, AT_FDCWD, (long)link, flags & ~O_NOFOLLOW, 0, 0, 0);
	if (fd != -ENXIO && fd != -ENOENT && fd != -EACCES)
		return fd;
	fd = fcntl(named, F_DUPFD, 0);
	return fd < 0 ? -errno : fd;
}

static int open_packages(const char *link, int flags)
{
	if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC))
		return -EROFS;
	return (int)signals_call(SYS_openat, AT_FDCWD, (long)link, flags & ~(O_NOFOLLOW | O_CREAT),
				 0, 0, 0);
}

int64_t path_open(struct w2c_sys *p, uint64_t dirfd, uint64_t at, int flags, int mode)
{
	char given[PATH_MAX], full[PATH_MAX], link[32];
	const char *path;
	bool is_link;
	int base, fd, r = guest_path(p, at, given);

	if (r)
		return r;
	path = toolbox_place(p, given, link, &is_link);
	if (flags & ~OPEN_FLAGS)
		return -EINVAL;
	/* O_PATH descriptors skip read permission but lead nowhere new. O_DIRECT and O_ASYNC are
	 * dropped. The guest never gets a controlling terminal. */
	if (flags & O_PATH)
		flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	else
		flags |= O_NOCTTY;
	base = guest_int(dirfd) == AT_FDCWD ? AT_FDCWD : guest_fd(p, dirfd);
	fd = named_descriptor(p, path);
	if (facts_is(path) && !(flags & O_PATH)) {
		fd = facts_open(p, path, flags);
	} else if (is_link) {
		fd = open_packages(path, flags);
	} else if (fd >= 0) {
		fd = open_again(fd, flags);
	} else if (p->rooted && !is_device(p, path)) {
		r = path[0] ? absolute(p, base, path, full) : -ENOENT;
		if (r)
			return r;
		fd = open_beneath(p, full, flags & ~O_LARGEFILE, mode);
	} else {
		fd = (int)signals_call(SYS_openat, base, (long)path, flags, mode, 0, 0);
	}
	return admit(p, fd, flags);
}

int64_t path_open_beneath(struct w2c_sys *p, int dirfd, const char *path, int flags, int mode)
{
	struct open_how how = { .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	struct stat st;
	int64_t fd;

	if (flags & ~OPEN_FLAGS)
		return -EINVAL;
	if (!(flags & O_PATH))
		how.flags |= O_NOCTTY;
	if (flags & O_CREAT)
		how.mode = (uint64_t)(mode & 07777);
	fd = open_by(dirfd, path, &how);
	/* /proc is not part of the directory: only the door shows its files. */
	if (fd >= 0 && p->proc_dev && !fstat((int)fd, &st) && st.st_dev == p->proc_dev) {
		close((int)fd);
		fd = -EXDEV;
	}
	return admit(p, (int)fd, flags);
}

int path_open_program(const struct w2c_sys *p, const char *path)
{
	char full[PATH_MAX];
	int r, fd = named_descriptor(p, path);

	if (fd >= 0) {
		snprintf(full, sizeof full, "/proc/self/fd/%d", fd);
		r = open(full, O_PATH | O_CLOEXEC);
		return r < 0 ? -errno : r;
	}
	if (p->rooted) {
		r = absolute(p, AT_FDCWD, path, full);
		return r ? r : open_beneath(p, full, O_PATH | O_CLOEXEC, 0);
	}
	r = open(path, O_PATH | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

int path_open_read(const struct w2c_sys *p, const char *path)
{
	char full[PATH_MAX];
	int r, fd = named_descriptor(p, path);

	if (fd >= 0) {
		snprintf(full, sizeof full, "/proc/self/fd/%d", fd);
	} else if (p->rooted) {
		r = absolute(p, AT_FDCWD, path, full);
		return r ? r : open_beneath(p, full, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	}
	r = open(fd >= 0 ? full : path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return r < 0 ? -errno : r;
}
