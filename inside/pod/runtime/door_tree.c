/* inside/pod/runtime/door_tree.c - calls that change the tree beneath the pod's root. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/door.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inside/pod/runtime/guest_layout.h"
#include "inside/pod/runtime/path.h"

#define HERE ((uint64_t)(uint32_t)AT_FDCWD)

/* Mode, owner and times may be changed for files and directories, never for a device or socket:
 * those belong to the host, whether as an inherited descriptor or by name. */
static bool is_own_kind(const struct stat *st)
{
	return S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode) ||
	       S_ISFIFO(st->st_mode);
}

/* 0, or a negative errno. */
static int may_change_fd(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	return is_own_kind(&st) ? 0 : -EPERM;
}

static int may_change(const struct place *at, int flags)
{
	struct stat st;

	if (fstatat(at->dirfd, at->path, &st, path_flags(at, flags & AT_SYMLINK_NOFOLLOW)))
		return -errno;
	return is_own_kind(&st) ? 0 : -EPERM;
}

/* An operation on one resolved name. */
typedef int64_t one_fn(const struct place *at, const uint64_t arg[3]);

static int64_t one(struct w2c_sys *p, uint64_t dirfd, uint64_t at, enum path_last last, one_fn *fn,
		   uint64_t x, uint64_t y, uint64_t z)
{
	const uint64_t arg[3] = { x, y, z };
	struct place place;
	int64_t r = path_place(p, dirfd, at, last, &place);

	if (r)
		return r;
	r = fn(&place, arg);
	path_done(&place);
	return r;
}

/* An operation on two: rename and link. */
static int64_t two(struct w2c_sys *p, const uint64_t a[4], enum path_last last, int call,
		   uint32_t flags)
{
	struct place from, to;
	int64_t r = path_place(p, a[0], a[1], last, &from);

	if (r)
		return r;
	r = path_place(p, a[2], a[3], PATH_NOFOLLOW, &to);
	if (!r) {
		/* A name that was followed is a link in /proc. */
		if (call == SYS_linkat && last == PATH_FOLLOW)
			flags |= AT_SYMLINK_FOLLOW;
		r = DOOR_RET(syscall(call, from.dirfd, from.path, to.dirfd, to.path, flags));
		path_done(&to);
	}
	path_done(&from);
	return r;
}

static int64_t do_rename(struct w2c_sys *p, uint64_t fd1, uint64_t at1, uint64_t fd2, uint64_t at2,
			 uint32_t flags)
{
	const uint64_t names[4] = { fd1, at1, fd2, at2 };

	if (flags & ~(uint32_t)(RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	return two(p, names, PATH_NOFOLLOW, SYS_renameat2, flags);
}

DOOR_FN(rename)
{
	return do_rename(p, HERE, a[0], HERE, a[1], 0);
}

DOOR_FN(renameat)
{
	return do_rename(p, a[0], a[1], a[2], a[3], 0);
}

DOOR_FN(renameat2)
{
	return do_rename(p, a[0], a[1], a[2], a[3], (uint32_t)a[4]);
}

static int64_t do_link(struct w2c_sys *p, uint64_t fd1, uint64_t at1, uint64_t fd2, uint64_t at2,
		       uint32_t flags)
{
	const uint64_t names[4] = { fd1, at1, fd2, at2 };

	/* AT_EMPTY_PATH would give a name to a descriptor that has none. */
	if (flags & ~(uint32_t)AT_SYMLINK_FOLLOW)
		return -EINVAL;
	return two(p, names, flags ? PATH_FOLLOW : PATH_NOFOLLOW, SYS_linkat, 0);
}

DOOR_FN(link)
{
	return do_link(p, HERE, a[0], HERE, a[1], 0);
}

DOOR_FN(linkat)
{
	return do_link(p, a[0], a[1], a[2], a[3], (uint32_t)a[4]);
}

static int64_t do_mkdir(const struct place *at, const uint64_t arg[3])
{
	return DOOR_RET(mkdirat(at->dirfd, at->path, (mode_t)arg[0] & 07777));
}

DOOR_FN(mkdir)
{
	return one(p, HERE, a[0], PATH_NOFOLLOW, do_mkdir, a[1], 0, 0);
}

DOOR_FN(mkdirat)
{
	return one(p, a[0], a[1], PATH_NOFOLLOW, do_mkdir, a[2], 0, 0);
}

static int64_t do_unlink(const struct place *at, const uint64_t arg[3])
{
	return DOOR_RET(unlinkat(at->dirfd, at->path, guest_int(arg[0])));
}

DOOR_FN(rmdir)
{
	return one(p, HERE, a[0], PATH_NOFOLLOW, do_unlink, AT_REMOVEDIR, 0, 0);
}

DOOR_FN(unlink)
{
	return one(p, HERE, a[0], PATH_NOFOLLOW, do_unlink, 0, 0, 0);
}

DOOR_FN(unlinkat)
{
	if (guest_int(a[2]) & ~AT_REMOVEDIR)
		return -EINVAL;
	return one(p, a[0], a[1], PATH_NOFOLLOW, do_unlink, a[2], 0, 0);
}

static int64_t do_symlink(struct w2c_sys *p, uint64_t text, uint64_t dirfd, uint64_t at)
{
	struct place place;
	char target[PATH_MAX];
	int64_t r = guest_path(p, text, target);

	if (!r)
		r = path_place(p, dirfd, at, PATH_NOFOLLOW, &place);
	if (r)
		return r;
	r = DOOR_RET(symlinkat(target, place.dirfd, place.path));
	path_done(&place);
	return r;
}

DOOR_FN(symlink)
{
	return do_symlink(p, a[0], HERE, a[1]);
}

DOOR_FN(symlinkat)
{
	return do_symlink(p, a[0], a[1], a[2]);
}

static int64_t do_mknod(const struct place *at, const uint64_t arg[3])
{
	mode_t mode = (mode_t)arg[0];

	/* No devices. A socket's name would lead nowhere here. */
	if ((mode & S_IFMT) && !S_ISREG(mode) && !S_ISFIFO(mode))
		return -EPERM;
	return DOOR_RET(mknodat(at->dirfd, at->path, mode & (S_IFMT | 07777), 0));
}

DOOR_FN(mknod)
{
	return one(p, HERE, a[0], PATH_NOFOLLOW, do_mknod, a[1], 0, 0);
}

DOOR_FN(mknodat)
{
	return one(p, a[0], a[1], PATH_NOFOLLOW, do_mknod, a[2], 0, 0);
}

static int64_t do_chmod(const struct place *at, const uint64_t arg[3])
{
	int r = may_change(at, 0);

	return r ? r : DOOR_RET(fchmodat(at->dirfd, at->path, (mode_t)arg[0] & 07777, 0));
}

DOOR_FN(chmod)
{
	return one(p, HERE, a[0], PATH_FOLLOW, do_chmod, a[1], 0, 0);
}

DOOR_FN(fchmod)
{
	int fd = guest_fd(p, a[0]), r = may_change_fd(fd);

	return r ? r : DOOR_RET(fchmod(fd, (mode_t)a[1] & 07777));
}

DOOR_FN(fchmodat)
{
	return one(p, a[0], a[1], PATH_FOLLOW, do_chmod, a[2], 0, 0);
}

static int64_t do_chown(const struct place *at, const uint64_t arg[3])
{
	int r = may_change(at, guest_int(arg[2]));

	if (r)
		return r;
	return DOOR_RET(fchownat(at->dirfd, at->path, (uid_t)arg[0], (gid_t)arg[1],
				 path_flags(at, guest_int(arg[2]))));
}

DOOR_FN(chown)
{
	return one(p, HERE, a[0], PATH_FOLLOW, do_chown, a[1], a[2], 0);
}

DOOR_FN(lchown)
{
	return one(p, HERE, a[0], PATH_NOFOLLOW, do_chown, a[1], a[2], AT_SYMLINK_NOFOLLOW);
}

DOOR_FN(fchown)
{
	int fd = guest_fd(p, a[0]), r = may_change_fd(fd);

	return r ? r : DOOR_RET(fchown(fd, (uid_t)a[1], (gid_t)a[2]));
}

DOOR_FN(fchownat)
{
	int flags = guest_int(a[4]);

	if (flags & ~AT_SYMLINK_NOFOLLOW)
		return -EINVAL;
	return one(p, a[0], a[1], flags ? PATH_NOFOLLOW : PATH_FOLLOW, do_chown, a[2], a[3],
		   (uint64_t)flags);
}

static int64_t do_truncate(const struct place *at, const uint64_t arg[3])
{
	return DOOR_RET(truncate(at->path, (off_t)arg[0]));
}

DOOR_FN(truncate)
{
	return one(p, HERE, a[0], PATH_FOLLOW, do_truncate, a[1], 0, 0);
}

DOOR_FN(utimensat)
{
	struct timespec ts[2];
	struct place place;
	int flags = guest_int(a[3]), set = guest_timespec(p, a[2], &ts[0]);
	int64_t r;

	if (set < 0 || (set && guest_timespec(p, a[2] + 16, &ts[1]) != 1))
		return -EFAULT;
	if (flags & ~AT_SYMLINK_NOFOLLOW)
		return -EINVAL;
	if (!a[1]) { /* futimens */
		int fd = guest_fd(p, a[0]);

		r = may_change_fd(fd);
		return r ? r : DOOR_RET(syscall(SYS_utimensat, fd, NULL, set ? ts : NULL, 0));
	}
	r = path_place(p, a[0], a[1], flags ? PATH_NOFOLLOW : PATH_FOLLOW, &place);
	if (r)
		return r;
	r = may_change(&place, flags);
	if (!r)
		r = DOOR_RET(syscall(SYS_utimensat, place.dirfd, place.path, set ? ts : NULL,
				     path_flags(&place, flags)));
	path_done(&place);
	return r;
}

DOOR_FN(umask)
{
	(void)p;
	return umask((mode_t)a[0] & 0777);
}
