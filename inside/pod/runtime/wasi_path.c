/* inside/pod/runtime/wasi_path.c - WASI calls on names beneath a directory that the program has. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inside/pod/runtime/path.h"
#include "inside/pod/runtime/wasi.h"

enum { OPEN_CREATE = 1, OPEN_DIRECTORY = 2, OPEN_EXCLUSIVE = 4, OPEN_TRUNCATE = 8 };
enum { FLAG_APPEND = 1, FLAG_DSYNC = 2, FLAG_NONBLOCK = 4, FLAG_RSYNC = 8, FLAG_SYNC = 16 };
#define LOOKUP_FOLLOW 1u
#define HERE ((uint64_t)(uint32_t)AT_FDCWD)

/* Copies a name of the guest, which has no NUL, to one with a NUL. */
static uint32_t name_of(const struct w2c_sys *p, uint64_t at, uint64_t len, char buf[PATH_MAX])
{
	const char *from;

	len = (uint32_t)len;
	from = wasi_at(p, at, len);
	if (!from)
		return WASI_FAULT;
	if (len >= PATH_MAX)
		return WASI_NAMETOOLONG;
	if (!len)
		return WASI_NOENT;
	if (memchr(from, 0, len))
		return WASI_INVAL;
	memcpy(buf, from, len);
	buf[len] = 0;
	return buf[0] == '/' ? WASI_NOTCAPABLE : WASI_OK;
}

static uint32_t beneath_error(int64_t r)
{
	return r == -EXDEV ? WASI_NOTCAPABLE : wasi_error(r);
}

/* The parent and last component of a name to be changed. A trailing slash is kept, so that the
 * kernel decides what it means. Only for calls that never follow the last component. */
struct spot {
	int parent; /* to close */
	uint64_t name;
};

static void spot_done(struct spot *s)
{
	if (s->parent >= 0)
		close(s->parent);
}

static uint32_t spot_find(struct w2c_sys *p, const struct wasi_fd *dir, uint64_t at, uint64_t len,
			  struct spot *ret)
{
	char buf[PATH_MAX], last[PATH_MAX + 1], *slash;
	uint32_t e = name_of(p, at, len, buf);
	bool is_directory;
	size_t n;
	int64_t fd;

	ret->parent = -1;
	if (e)
		return e;
	n = strlen(buf);
	is_directory = buf[n - 1] == '/';
	while (n > 1 && buf[n - 1] == '/')
		buf[--n] = 0;
	slash = strrchr(buf, '/');
	snprintf(last, sizeof last, "%s%s", slash ? slash + 1 : buf, is_directory ? "/" : "");
	ret->name = wasi_note(p, last, strlen(last) + 1);
	if (!ret->name)
		return WASI_NAMETOOLONG;
	last[strcspn(last, "/")] = 0;
	if (!strcmp(last, "..") || !strcmp(last, "."))
		return WASI_INVAL;
	if (slash)
		*slash = 0;
	fd = path_open_beneath(p, dir->fd, slash ? buf : ".", O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return beneath_error(fd);
	ret->parent = (int)fd;
	return WASI_OK;
}

/* One call of the door on the last component. */
static uint32_t change(struct w2c_sys *p, const uint64_t a[3], uint64_t right, long call,
		       uint64_t arg)
{
	struct wasi_fd *dir;
	struct spot s = { .parent = -1 };
	uint32_t e = wasi_find(p, a[0], right, &dir);

	if (!e)
		e = spot_find(p, dir, a[1], a[2], &s);
	if (!e)
		e = wasi_error(wasi_door(p, call, (uint64_t)s.parent, s.name, arg, 0));
	spot_done(&s);
	return e;
}

WASI_FN(path_create_directory)
{
	return change(p, a, WASI_PATH_CREATE_DIRECTORY, SYS_mkdirat, 0777);
}

WASI_FN(path_remove_directory)
{
	return change(p, a, WASI_PATH_REMOVE_DIRECTORY, SYS_unlinkat, AT_REMOVEDIR);
}

WASI_FN(path_unlink_file)
{
	return change(p, a, WASI_PATH_UNLINK, SYS_unlinkat, 0);
}

/* Hard links are not supported, as in other WASI runtimes. */
WASI_FN(path_link)
{
	struct wasi_fd *from, *to;
	uint32_t e = wasi_find(p, a[0], 0, &from);

	if (!e)
		e = wasi_find(p, a[4], 0, &to);
	return e ? e : WASI_NOTSUP;
}

WASI_FN(path_rename)
{
	struct spot from = { .parent = -1 }, to = { .parent = -1 };
	struct wasi_fd *old_dir, *new_dir;
	uint32_t e = wasi_find(p, a[0], WASI_PATH_RENAME_SOURCE, &old_dir);

	if (!e)
		e = wasi_find(p, a[3], WASI_PATH_RENAME_TARGET, &new_dir);
	if (!e)
		e = spot_find(p, old_dir, a[1], a[2], &from);
	if (!e)
		e = spot_find(p, new_dir, a[4], a[5], &to);
	if (!e)
		e = wasi_error(wasi_door(p, SYS_renameat, (uint64_t)from.parent, from.name,
					 (uint64_t)to.parent, to.name));
	spot_done(&from);
	spot_done(&to);
	return e;
}

WASI_FN(path_symlink)
{
	struct spot s = { .parent = -1 };
	char target[PATH_MAX];
	struct wasi_fd *dir;
	uint32_t e = wasi_find(p, a[2], WASI_PATH_SYMLINK, &dir);
	uint64_t at;

	if (!e)
		e = name_of(p, a[0], a[1], target);
	if (!e)
		e = spot_find(p, dir, a[3], a[4], &s);
	if (!e) {
		at = wasi_note(p, target, strlen(target) + 1);
		e = at ? wasi_error(wasi_door(p, SYS_symlinkat, at, (uint64_t)s.parent, s.name, 0))
		       : WASI_NAMETOOLONG;
	}
	spot_done(&s);
	return e;
}

static bool ends_in_slash(const struct w2c_sys *p, uint64_t at, uint64_t len)
{
	const char *name = (uint32_t)len ? wasi_at(p, at, (uint32_t)len) : NULL;

	return name && name[(uint32_t)len - 1] == '/';
}

/* A link with a trailing slash means the directory, which is not a link. */
static uint32_t read_no_link(struct w2c_sys *p, const struct wasi_fd *dir, uint64_t at,
			     uint64_t len)
{
	char buf[PATH_MAX];
	uint32_t e = name_of(p, at, len, buf);
	int64_t fd = e ? -1 : path_open_beneath(p, dir->fd, buf, O_PATH, 0);

	if (e)
		return e;
	if (fd >= 0)
		close((int)fd);
	return fd < 0 ? beneath_error(fd) : WASI_INVAL;
}

WASI_FN(path_readlink)
{
	struct spot s = { .parent = -1 };
	struct wasi_fd *dir;
	uint64_t at, len = (uint32_t)a[4];
	uint8_t *to = wasi_at(p, a[3], len);
	uint32_t e = wasi_find(p, a[0], WASI_PATH_READLINK, &dir);
	int64_t n;

	if (!e && (!to || !wasi_at(p, a[5], 4)))
		e = WASI_FAULT;
	if (!e && ends_in_slash(p, a[1], a[2]))
		return read_no_link(p, dir, a[1], a[2]);
	if (!e)
		e = spot_find(p, dir, a[1], a[2], &s);
	if (!e) {
		at = wasi_note(p, NULL, PATH_MAX);
		n = wasi_door(p, SYS_readlinkat, (uint64_t)s.parent, s.name, at, PATH_MAX);
		e = wasi_error(n);
		if (!e) {
			n = (uint64_t)n < len ? n : (int64_t)len;
			memcpy(to, wasi_noted(p, at), (size_t)n);
			wasi_put32(p, a[5], (uint64_t)n);
		}
	}
	spot_done(&s);
	return e;
}

/* Opens the file itself, without the right to read or write it. */
static uint32_t reach(struct w2c_sys *p, const struct wasi_fd *dir, const uint64_t a[3], int *ret)
{
	char buf[PATH_MAX];
	uint32_t e = name_of(p, a[1], a[2], buf);
	int64_t fd;

	if (e)
		return e;
	fd = path_open_beneath(p, dir->fd, buf,
			       O_PATH | ((uint32_t)a[0] & LOOKUP_FOLLOW ? 0 : O_NOFOLLOW), 0);
	if (fd < 0)
		return beneath_error(fd);
	*ret = (int)fd;
	return WASI_OK;
}

WASI_FN(path_filestat_get)
{
	struct wasi_fd *dir;
	struct stat st;
	int fd = -1;
	uint32_t e = wasi_find(p, a[0], WASI_PATH_FILESTAT_GET, &dir);

	if (!e)
		e = reach(p, dir, a + 1, &fd);
	if (e)
		return e;
	e = fstat(fd, &st) ? wasi_error(-errno) : wasi_put_stat(p, a[4], &st);
	close(fd);
	return e;
}

/* Of the link itself, or of what reach() opened, which the door knows by its number. */
static uint32_t set_times(struct w2c_sys *p, const struct wasi_fd *dir, const uint64_t *a,
			  uint64_t times)
{
	struct spot s = { .parent = -1 };
	char name[32];
	int fd = -1;
	uint32_t e;

	if ((uint32_t)a[1] & LOOKUP_FOLLOW || ends_in_slash(p, a[2], a[3])) {
		e = reach(p, dir, a + 1, &fd);
		if (e)
			return e;
		snprintf(name, sizeof name, "/dev/fd/%d", fd);
		e = wasi_error(wasi_door(p, SYS_utimensat, HERE,
					 wasi_note(p, name, strlen(name) + 1), times, 0));
		close(fd);
		return e;
	}
	e = spot_find(p, dir, a[2], a[3], &s);
	if (!e)
		e = wasi_error(wasi_door(p, SYS_utimensat, (uint64_t)s.parent, s.name, times,
					 AT_SYMLINK_NOFOLLOW));
	spot_done(&s);
	return e;
}

WASI_FN(path_filestat_set_times)
{
	struct wasi_fd *dir;
	uint64_t times = wasi_note_times(p, a[4], a[5], a[6]);
	uint32_t e = wasi_find(p, a[0], WASI_PATH_SET_TIMES, &dir);

	if (e)
		return e;
	return times ? set_times(p, dir, a, times) : WASI_INVAL;
}

static int access_mode(uint64_t rights)
{
	bool reads = rights & (WASI_FD_READ | WASI_FD_READDIR);
	bool writes = rights & (WASI_FD_WRITE | WASI_FD_ALLOCATE | WASI_FD_SET_SIZE);

	return writes && reads ? O_RDWR : writes ? O_WRONLY : O_RDONLY;
}

/* The kernel's flags for a request; -1: it contradicts itself. */
static int open_flags(uint64_t lookup, uint64_t how, uint64_t fdflags, uint64_t rights)
{
	static const struct {
		uint32_t bit;
		int flag;
	} ways[] = { { OPEN_CREATE, O_CREAT },
		     { OPEN_EXCLUSIVE, O_EXCL },
		     { OPEN_TRUNCATE, O_TRUNC } },
	  kinds[] = { { FLAG_APPEND, O_APPEND },
		      { FLAG_DSYNC, O_DSYNC },
		      { FLAG_NONBLOCK, O_NONBLOCK },
		      { FLAG_RSYNC, O_SYNC },
		      { FLAG_SYNC, O_SYNC } };
	bool is_directory = how & OPEN_DIRECTORY;
	int flags = is_directory ? O_RDONLY | O_DIRECTORY : access_mode(rights);

	if ((uint32_t)how > 15 || (uint32_t)fdflags > 31)
		return -1;
	if (is_directory && (how & (OPEN_CREATE | OPEN_EXCLUSIVE | OPEN_TRUNCATE)))
		return -1;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		flags |= how & ways[i].bit ? ways[i].flag : 0;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		flags |= fdflags & kinds[i].bit ? kinds[i].flag : 0;
	return flags | ((uint32_t)lookup & LOOKUP_FOLLOW ? 0 : O_NOFOLLOW);
}

WASI_FN(path_open)
{
	struct wasi_fd *dir;
	char name[PATH_MAX];
	uint64_t needed = WASI_PATH_OPEN | (a[4] & OPEN_CREATE ? WASI_PATH_CREATE_FILE : 0) |
			  (a[4] & OPEN_TRUNCATE ? WASI_PATH_SET_SIZE : 0);
	uint32_t e = wasi_find(p, a[0], needed, &dir), n;
	uint64_t base, inheriting;
	int flags;
	int64_t fd;

	if (!e)
		e = name_of(p, a[2], a[3], name);
	if (e)
		return e;
	if (!wasi_at(p, a[8], 4))
		return WASI_FAULT;
	base = a[5] & dir->inheriting;
	inheriting = a[6] & dir->inheriting;
	flags = open_flags(a[1], a[4], a[7], base);
	if (flags < 0)
		return WASI_INVAL;
	fd = path_open_beneath(p, dir->fd, name, flags, 0666);
	if (fd < 0)
		return beneath_error(fd);
	e = wasi_add(p, (int)fd, base, inheriting, &n);
	if (e)
		close((int)fd);
	else
		wasi_put32(p, a[8], n);
	return e;
}
