/* inside/pod/runtime/wasi_fd.c - WASI calls on descriptors that the program has. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/wasi.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "inside/pod/runtime/signals.h"

enum { FLAG_APPEND = 1, FLAG_DSYNC = 2, FLAG_NONBLOCK = 4, FLAG_RSYNC = 8, FLAG_SYNC = 16 };

/* Copies a vector before checking it. The door's own function refuses address 0, which is valid
 * here. */
static int vector(const struct w2c_sys *p, uint64_t list, uint64_t count, struct iovec *out)
{
	uint64_t total = 0;
	const uint8_t *in;

	count = (uint32_t)count;
	if (count > WASI_VECTORS)
		return -EINVAL;
	in = wasi_at(p, list, count * 8);
	if (!in)
		return -EFAULT;
	for (uint64_t i = 0; i < count; i++) {
		uint32_t pair[2];

		memcpy(pair, in + 8 * i, sizeof pair);
		total += pair[1];
		if (total > WASI_TRANSFER)
			return -EINVAL;
		out[i].iov_len = pair[1];
		out[i].iov_base = wasi_at(p, pair[0], pair[1]);
		if (!out[i].iov_base)
			return -EFAULT;
	}
	return (int)count;
}

/* fd, vector, its count [, offset], address for the number of bytes. */
static uint32_t transfer(struct w2c_sys *p, long call, const uint64_t a[WASI_ARGS], uint64_t rights)
{
	bool has_offset = call == SYS_preadv || call == SYS_pwritev;
	uint64_t to = a[has_offset ? 4 : 3];
	struct iovec iov[WASI_VECTORS];
	struct wasi_fd *f;
	uint32_t e = wasi_find(p, a[0], rights, &f);
	int64_t r;
	int n;

	if (e)
		return e;
	n = vector(p, a[1], a[2], iov);
	if (n < 0)
		return wasi_error(n);
	if (!wasi_at(p, to, 4))
		return WASI_FAULT;
	if (has_offset && (int64_t)a[3] < 0)
		return WASI_INVAL;
	r = signals_call(call, f->fd, (long)iov, n, has_offset ? (long)a[3] : 0, 0, 0);
	return r < 0 ? wasi_error(r) : wasi_put32(p, to, (uint64_t)r) ? WASI_OK : WASI_FAULT;
}

WASI_FN(fd_read)
{
	return transfer(p, SYS_readv, a, WASI_FD_READ);
}

WASI_FN(fd_write)
{
	return transfer(p, SYS_writev, a, WASI_FD_WRITE);
}

WASI_FN(fd_pread)
{
	return transfer(p, SYS_preadv, a, WASI_FD_READ | WASI_FD_SEEK);
}

WASI_FN(fd_pwrite)
{
	return transfer(p, SYS_pwritev, a, WASI_FD_WRITE | WASI_FD_SEEK);
}

/* A call of the door on one descriptor. */
static uint32_t simple(struct w2c_sys *p, long call, uint64_t fd, uint64_t rights,
		       const uint64_t arg[2])
{
	struct wasi_fd *f;
	uint32_t e = wasi_find(p, fd, rights, &f);

	return e ? e : wasi_error(wasi_door(p, call, (uint64_t)f->fd, arg[0], arg[1], 0));
}

WASI_FN(fd_datasync)
{
	return simple(p, SYS_fdatasync, a[0], WASI_FD_DATASYNC, (uint64_t[]){ 0, 0 });
}

WASI_FN(fd_sync)
{
	return simple(p, SYS_fsync, a[0], WASI_FD_SYNC, (uint64_t[]){ 0, 0 });
}

WASI_FN(fd_filestat_set_size)
{
	if ((int64_t)a[1] < 0)
		return WASI_INVAL;
	return simple(p, SYS_ftruncate, a[0], WASI_FD_SET_SIZE, (uint64_t[]){ a[1], 0 });
}

WASI_FN(fd_allocate)
{
	struct wasi_fd *f;
	uint32_t e = wasi_find(p, a[0], WASI_FD_ALLOCATE, &f);

	if (e)
		return e;
	if ((int64_t)a[1] < 0 || (int64_t)a[2] <= 0)
		return WASI_INVAL;
	return wasi_error(wasi_door(p, SYS_fallocate, (uint64_t)f->fd, 0, a[1], a[2]));
}

/* A hint, which the door accepts without calling the kernel. */
WASI_FN(fd_advise)
{
	struct wasi_fd *f;
	uint32_t e = wasi_find(p, a[0], WASI_FD_ADVISE, &f);

	return e ? e : (uint32_t)a[3] > 5 ? WASI_INVAL : WASI_OK;
}

WASI_FN(fd_close)
{
	struct wasi_fd *f;
	uint32_t e = wasi_find(p, a[0], 0, &f);
	int64_t r;

	if (e)
		return e;
	r = wasi_door(p, SYS_close, (uint64_t)f->fd, 0, 0, 0);
	*f = (struct wasi_fd){ .fd = -1 };
	return wasi_error(r);
}

WASI_FN(fd_renumber)
{
	struct wasi_fd *from = NULL, *to = NULL;
	uint32_t e = wasi_find(p, a[0], 0, &from);

	if (!e)
		e = wasi_find(p, a[1], 0, &to);
	if (e || from == to)
		return e;
	wasi_door(p, SYS_close, (uint64_t)to->fd, 0, 0, 0);
	*to = *from;
	*from = (struct wasi_fd){ .fd = -1 };
	return WASI_OK;
}

static uint32_t seek(struct w2c_sys *p, struct wasi_fd *f, uint64_t offset, int whence, uint64_t to)
{
	int64_t r;

	if (!wasi_at(p, to, 8))
		return WASI_FAULT;
	r = wasi_door(p, SYS_lseek, (uint64_t)f->fd, offset, (uint64_t)whence, 0);
	if (r >= 0)
		wasi_put64(p, to, (uint64_t)r);
	return wasi_error(r);
}

WASI_FN(fd_seek)
{
	static const int how[] = { SEEK_SET, SEEK_CUR, SEEK_END };
	struct wasi_fd *f;
	uint32_t e = wasi_find(p, a[0], WASI_FD_SEEK, &f);

	if (e)
		return e;
	return (uint32_t)a[2] > 2 ? WASI_INVAL : seek(p, f, a[1], how[(uint32_t)a[2]], a[3]);
}

WASI_FN(fd_tell)
{
	struct wasi_fd *f;
	uint32_t e = wasi_find(p, a[0], WASI_FD_TELL, &f);

	return e ? e : seek(p, f, 0, SEEK_CUR, a[1]);
}

WASI_FN(fd_fdstat_get)
{
	uint8_t out[24] = { 0 };
	struct wasi_fd *f;
	uint32_t e = wasi_find(p, a[0], 0, &f);
	int64_t flags;

	if (e)
		return e;
	flags = wasi_door(p, SYS_fcntl, (uint64_t)f->fd, F_GETFL, 0, 0);
	if (flags < 0)
		return wasi_error(flags);
	out[0] = (uint8_t)f->type;
	out[2] = (uint8_t)((flags & O_APPEND ? FLAG_APPEND : 0) |
			   (flags & O_NONBLOCK ? FLAG_NONBLOCK : 0) |
			   ((flags & O_SYNC) == O_SYNC ? FLAG_SYNC
			    : flags & O_DSYNC          ? FLAG_DSYNC
						       : 0));
	memcpy(out + 8, &f->base, 8);
	memcpy(out + 16, &f->inheriting, 8);
	return wasi_put(p, a[1], out, sizeof out) ? WASI_OK : WASI_FAULT;
}

WASI_FN(fd_fdstat_set_flags)
{
	uint32_t flags = (uint32_t)a[1];

	if (flags & ~(uint32_t)(FLAG_APPEND | FLAG_NONBLOCK))
		return WASI_INVAL;
	return simple(
		p, SYS_fcntl, a[0], WASI_FD_SET_FLAGS,
		(uint64_t[]){ F_SETFL, (uint64_t)((flags & FLAG_APPEND ? O_APPEND : 0) |
						  (flags & FLAG_NONBLOCK ? O_NONBLOCK : 0)) });
}

/* Rights can only be given up. */
WASI_FN(fd_fdstat_set_rights)
{
	struct wasi_fd *f;
	uint32_t e = wasi_find(p, a[0], 0, &f);

	if (e)
		return e;
	if ((a[1] & ~f->base) || (a[2] & ~f->inheriting))
		return WASI_NOTCAPABLE;
	f->base = a[1];
	f->inheriting = a[2];
	return WASI_OK;
}

static uint64_t nanoseconds(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * 1000000000u + (uint64_t)ts->tv_nsec;
}

uint32_t wasi_put_stat(const struct w2c_sys *p, uint64_t at, const struct stat *st)
{
	const uint64_t out[8] = { st->st_dev,
				  st->st_ino,
				  wasi_type_of(st),
				  st->st_nlink,
				  (uint64_t)st->st_size,
				  nanoseconds(&st->st_atim),
				  nanoseconds(&st->st_mtim),
				  nanoseconds(&st->st_ctim) };

	return wasi_put(p, at, out, sizeof out) ? WASI_OK : WASI_FAULT;
}

WASI_FN(fd_filestat_get)
{
	struct wasi_fd *f;
	struct stat st;
	uint32_t e = wasi_find(p, a[0], WASI_FD_FILESTAT_GET, &f);

	if (e)
		return e;
	return fstat(f->fd, &st) ? wasi_error(-errno) : wasi_put_stat(p, a[1], &st);
}

/* One time: set (bit), now (next bit), or unchanged. */
static bool time_of(uint64_t flags, unsigned bit, uint64_t value, struct timespec *ret)
{
	bool set = flags & bit, now = flags & (bit << 1);

	ret->tv_sec = set ? (time_t)(value / 1000000000u) : 0;
	ret->tv_nsec = set ? (long)(value % 1000000000u) : now ? UTIME_NOW : UTIME_OMIT;
	return !(set && now);
}

uint64_t wasi_note_times(struct w2c_sys *p, uint64_t atim, uint64_t mtim, uint64_t flags)
{
	struct timespec ts[2];

	flags = (uint32_t)flags;
	if (flags > 15 || !time_of(flags, 1, atim, &ts[0]) || !time_of(flags, 4, mtim, &ts[1]))
		return 0;
	return wasi_note(p, ts, sizeof ts);
}

WASI_FN(fd_filestat_set_times)
{
	uint64_t times = wasi_note_times(p, a[1], a[2], a[3]);

	if (!times)
		return WASI_INVAL;
	return simple(p, SYS_utimensat, a[0], WASI_FD_SET_TIMES, (uint64_t[]){ 0, times });
}

static uint32_t find_preopen(struct w2c_sys *p, uint64_t fd, struct wasi_fd **ret)
{
	uint32_t e = wasi_find(p, fd, 0, ret);

	return e ? e : (*ret)->preopen[0] ? WASI_OK : WASI_BADF;
}

WASI_FN(fd_prestat_get)
{
	struct wasi_fd *f;
	uint32_t e = find_preopen(p, a[0], &f);
	uint32_t out[2] = { 0 };

	if (e)
		return e;
	out[1] = (uint32_t)strlen(f->preopen);
	return wasi_put(p, a[1], out, sizeof out) ? WASI_OK : WASI_FAULT;
}

WASI_FN(fd_prestat_dir_name)
{
	struct wasi_fd *f;
	uint32_t e = find_preopen(p, a[0], &f);
	size_t n;

	if (e)
		return e;
	n = strlen(f->preopen);
	if ((uint32_t)a[2] < n)
		return WASI_NAMETOOLONG;
	return wasi_put(p, a[1], f->preopen, n) ? WASI_OK : WASI_FAULT;
}
