/* inside/pod/runtime/door_file.c - calls that look at files by name, beneath the pod's root. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/door.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inside/pod/runtime/path.h"

#define HERE ((uint64_t)(uint32_t)AT_FDCWD)
#define STAT_BYTES 144   /* the guest's struct is the kernel's */
#define STATFS_BYTES 120 /* likewise */
#define STATX_BYTES 256

DOOR_FN(open)
{
	return path_open(p, HERE, a[0], guest_int(a[1]), guest_int(a[2]));
}

DOOR_FN(openat)
{
	return path_open(p, a[0], a[1], guest_int(a[2]), guest_int(a[3]));
}

DOOR_FN(creat)
{
	return path_open(p, HERE, a[0], O_CREAT | O_WRONLY | O_TRUNC, guest_int(a[1]));
}

/* An *at() call with an empty path is about the descriptor itself. */
static bool is_empty_path(struct w2c_sys *p, uint64_t at, int flags)
{
	const char *path = guest_at(p, at, 1);

	return (flags & AT_EMPTY_PATH) && path && !*path;
}

static int64_t status(struct w2c_sys *p, uint64_t dirfd, uint64_t at, uint64_t out, int flags)
{
	void *to = guest_at(p, out, STAT_BYTES);
	struct place place;
	int64_t r;

	if (!to)
		return -EFAULT;
	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT))
		return -EINVAL;
	if (is_empty_path(p, at, flags) && guest_int(dirfd) != AT_FDCWD)
		return DOOR_RET(syscall(SYS_fstat, guest_fd(p, dirfd), to));
	r = path_place(p, dirfd, at, flags & AT_SYMLINK_NOFOLLOW ? PATH_NOFOLLOW : PATH_FOLLOW,
		       &place);
	if (r)
		return r;
	/* If the name was already followed, the place is a link in /proc that must be followed. */
	r = DOOR_RET(
		syscall(SYS_newfstatat, place.dirfd, place.path, to, path_flags(&place, flags)));
	path_done(&place);
	return r;
}

DOOR_FN(stat)
{
	return status(p, HERE, a[0], a[1], 0);
}

DOOR_FN(lstat)
{
	return status(p, HERE, a[0], a[1], AT_SYMLINK_NOFOLLOW);
}

DOOR_FN(fstat)
{
	void *to = guest_at(p, a[1], STAT_BYTES);

	return to ? DOOR_RET(syscall(SYS_fstat, guest_fd(p, a[0]), to)) : -EFAULT;
}

DOOR_FN(newfstatat)
{
	return status(p, a[0], a[1], a[2], guest_int(a[3]));
}

DOOR_FN(statx)
{
	int flags = guest_int(a[2]);
	void *to = guest_at(p, a[4], STATX_BYTES);
	struct place place;
	int64_t r;

	if (!to)
		return -EFAULT;
	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_SYNC_TYPE))
		return -EINVAL;
	if (is_empty_path(p, a[1], flags) && guest_int(a[0]) != AT_FDCWD)
		return DOOR_RET(
			syscall(SYS_statx, guest_fd(p, a[0]), "", flags, (uint32_t)a[3], to));
	r = path_place(p, a[0], a[1], flags & AT_SYMLINK_NOFOLLOW ? PATH_NOFOLLOW : PATH_FOLLOW,
		       &place);
	if (r)
		return r;
	r = DOOR_RET(syscall(SYS_statx, place.dirfd, place.path, path_flags(&place, flags),
			     (uint32_t)a[3], to));
	path_done(&place);
	return r;
}

static int64_t ask_kernel(const struct place *place, int mode, int flags)
{
	return DOOR_RET(
		syscall(SYS_faccessat2, place->dirfd, place->path, mode, path_flags(place, flags)));
}

/* A file is executable if the pod's exec would run it. On a noexec mount the kernel says no for
 * every file, but a script there does run. */
static int64_t may_run(const struct place *place, int mode, int flags)
{
	struct stat st;

	if (fstatat(place->dirfd, place->path, &st, path_flags(place, flags & AT_SYMLINK_NOFOLLOW)))
		return -errno;
	return path_may_run(&st) ? ask_kernel(place, mode & ~X_OK, flags) : -EACCES;
}

static int64_t accessible(struct w2c_sys *p, uint64_t dirfd, uint64_t at, int mode, int flags)
{
	struct place place;
	int64_t r;

	if (flags & ~(AT_EACCESS | AT_SYMLINK_NOFOLLOW))
		return -EINVAL;
	r = path_place(p, dirfd, at, flags & AT_SYMLINK_NOFOLLOW ? PATH_NOFOLLOW : PATH_FOLLOW,
		       &place);
	if (r)
		return r;
	r = ask_kernel(&place, mode, flags);
	if (r == -EACCES && (mode & X_OK))
		r = may_run(&place, mode, flags);
	path_done(&place);
	return r;
}

DOOR_FN(access)
{
	return accessible(p, HERE, a[0], guest_int(a[1]), 0);
}

DOOR_FN(faccessat)
{
	return accessible(p, a[0], a[1], guest_int(a[2]), 0);
}

DOOR_FN(faccessat2)
{
	return accessible(p, a[0], a[1], guest_int(a[2]), guest_int(a[3]));
}

static int64_t link_text(struct w2c_sys *p, uint64_t dirfd, uint64_t at, uint64_t out, uint64_t len)
{
	struct place place;
	void *to;
	int64_t r;

	len = (uint32_t)len;
	if (len > PATH_MAX)
		len = PATH_MAX;
	to = guest_at(p, out, len);
	if (!to || !len)
		return len ? -EFAULT : -EINVAL;
	r = path_place(p, dirfd, at, PATH_NOFOLLOW, &place);
	if (r)
		return r;
	r = place.followed ? -EINVAL : DOOR_RET(readlinkat(place.dirfd, place.path, to, len));
	path_done(&place);
	return r;
}

DOOR_FN(readlink)
{
	return link_text(p, HERE, a[0], a[1], a[2]);
}

DOOR_FN(readlinkat)
{
	return link_text(p, a[0], a[1], a[2], a[3]);
}

DOOR_FN(chdir)
{
	struct place place;
	int64_t r = path_place(p, HERE, a[0], PATH_FOLLOW, &place);

	if (r)
		return r;
	r = DOOR_RET(chdir(place.path));
	path_done(&place);
	return r;
}

DOOR_FN(fchdir)
{
	return DOOR_RET(fchdir(guest_fd(p, a[0])));
}

DOOR_FN(getcwd)
{
	char buf[PATH_MAX];
	int n = path_cwd(p, buf);
	char *out;

	if (n < 0)
		return n;
	if ((uint32_t)a[1] < (uint32_t)n + 1)
		return -ERANGE;
	out = guest_at(p, a[0], (uint64_t)n + 1);
	if (!out)
		return -EFAULT;
	memcpy(out, buf, (size_t)n + 1);
	return n + 1;
}

DOOR_FN(statfs)
{
	void *to = guest_at(p, a[1], STATFS_BYTES);
	struct place place;
	int64_t r;

	if (!to)
		return -EFAULT;
	r = path_place(p, HERE, a[0], PATH_FOLLOW, &place);
	if (r)
		return r;
	r = DOOR_RET(syscall(SYS_statfs, place.path, to));
	path_done(&place);
	return r;
}

DOOR_FN(fstatfs)
{
	void *to = guest_at(p, a[1], STATFS_BYTES);

	return to ? DOOR_RET(syscall(SYS_fstatfs, guest_fd(p, a[0]), to)) : -EFAULT;
}
