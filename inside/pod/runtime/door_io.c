/* inside/pod/runtime/door_io.c - calls on descriptors that the guest already has. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/door.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

#include "inside/pod/runtime/guest_layout.h"
#include "inside/pod/runtime/jobs.h"
#include "inside/pod/runtime/signals.h"

/* The kernel limits a transfer to this size; no program asks for more. */
#define MAX_TRANSFER 0x7ffff000u
#define MAX_VECTORS 1024

/* read, write and similar: fd, buffer, length [, offset]. */
static int64_t transfer(struct w2c_sys *p, long n, const uint64_t a[6])
{
	uint64_t len = (uint32_t)a[2];
	void *buf = len ? guest_at(p, a[1], len) : p->memory->data;
	int fd = guest_fd(p, a[0]);

	if (fd < 0)
		return -EBADF;
	if (!buf)
		return -EFAULT;
	if (len > MAX_TRANSFER)
		len = MAX_TRANSFER;
	return signals_call(n, fd, (long)buf, (long)len, (long)a[3], 0, 0);
}

DOOR_FN(read)
{
	return transfer(p, SYS_read, a);
}

DOOR_FN(write)
{
	return transfer(p, SYS_write, a);
}

DOOR_FN(pread64)
{
	return (int64_t)a[3] < 0 ? -EINVAL : transfer(p, SYS_pread64, a);
}

DOOR_FN(pwrite64)
{
	return (int64_t)a[3] < 0 ? -EINVAL : transfer(p, SYS_pwrite64, a);
}

/* Copies a guest's vector before checking it. Its sum is bounded by the guest's memory. */
static int vector(struct w2c_sys *p, const uint64_t a[6], struct iovec out[MAX_VECTORS])
{
	uint64_t count = (uint32_t)a[2], total = 0;
	const uint32_t *in;

	if (count > MAX_VECTORS)
		return -EINVAL;
	in = count ? guest_at(p, a[1], count * 8) : NULL;
	if (count && !in)
		return -EFAULT;
	for (uint64_t i = 0; i < count; i++) {
		uint32_t base = in[2 * i], len = in[2 * i + 1];

		total += len;
		if (total > MAX_TRANSFER)
			return -EINVAL;
		out[i].iov_len = len;
		out[i].iov_base = len ? guest_at(p, base, len) : p->memory->data;
		if (!out[i].iov_base)
			return -EFAULT;
	}
	return (int)count;
}

static int64_t transfer_vector(struct w2c_sys *p, long n, const uint64_t a[6])
{
	struct iovec iov[MAX_VECTORS];
	int fd = guest_fd(p, a[0]), count = vector(p, a, iov);

	if (fd < 0)
		return -EBADF;
	if (count < 0)
		return count;
	/* The offset of preadv is complete in its first half, as on x86-64. */
	return signals_call(n, fd, (long)iov, count, (long)a[3], 0, 0);
}

DOOR_FN(readv)
{
	return transfer_vector(p, SYS_readv, a);
}

DOOR_FN(writev)
{
	return transfer_vector(p, SYS_writev, a);
}

DOOR_FN(preadv)
{
	return (int64_t)a[3] < 0 ? -EINVAL : transfer_vector(p, SYS_preadv, a);
}

DOOR_FN(pwritev)
{
	return (int64_t)a[3] < 0 ? -EINVAL : transfer_vector(p, SYS_pwritev, a);
}

DOOR_FN(lseek)
{
	return DOOR_RET(lseek(guest_fd(p, a[0]), (off_t)a[1], guest_int(a[2])));
}

DOOR_FN(close)
{
	return DOOR_RET(close(guest_fd(p, a[0])));
}

DOOR_FN(close_range)
{
	uint64_t first = (uint32_t)a[0], last = (uint32_t)a[1];

	if (first > last || ((uint32_t)a[2] & ~4u))
		return -EINVAL;
	if (first >= (uint64_t)p->fd_limit)
		return 0;
	if (last >= (uint64_t)p->fd_limit)
		last = (uint64_t)p->fd_limit - 1;
	return DOOR_RET(syscall(SYS_close_range, first, last, (uint32_t)a[2]));
}

DOOR_FN(dup)
{
	int fd = dup(guest_fd(p, a[0]));

	return fd < 0 ? -errno : guest_admit(p, fd);
}

DOOR_FN(dup2)
{
	int fd;

	if (guest_int(a[1]) >= p->fd_soft)
		return -EBADF;
	fd = dup2(guest_fd(p, a[0]), guest_fd(p, a[1]));
	return fd < 0 ? -errno : guest_admit(p, fd);
}

DOOR_FN(dup3)
{
	int fd;

	if (guest_int(a[2]) & ~O_CLOEXEC)
		return -EINVAL;
	if (guest_int(a[1]) >= p->fd_soft)
		return -EBADF;
	fd = dup3(guest_fd(p, a[0]), guest_fd(p, a[1]), guest_int(a[2]));
	return fd < 0 ? -errno : guest_admit(p, fd);
}

DOOR_FN(fcntl)
{
	int fd = guest_fd(p, a[0]), arg = guest_int(a[2]);
	void *lock;

	if (fd < 0)
		return -EBADF;
	switch (guest_int(a[1])) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		if (arg < 0 || arg >= p->fd_limit)
			return -EINVAL;
		fd = fcntl(fd, guest_int(a[1]), arg);
		return fd < 0 ? -errno : guest_admit(p, fd);
	case F_GETFD:
	case F_GETFL:
	case F_GETPIPE_SZ:
		return DOOR_RET(fcntl(fd, guest_int(a[1])));
	case F_SETFD:
		return DOOR_RET(fcntl(fd, F_SETFD, arg & FD_CLOEXEC));
	case F_SETFL:
		/* O_ASYNC would send signals, O_DIRECT has no use here. */
		return DOOR_RET(fcntl(fd, F_SETFL, arg & (O_APPEND | O_NONBLOCK | O_NOATIME)));
	case F_GETLK:
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		lock = guest_at(p, a[2], sizeof(struct flock));
		if (!lock)
			return -EFAULT;
		return signals_call(SYS_fcntl, fd, guest_int(a[1]), (long)lock, 0, 0, 0);
	default:
		return -EINVAL;
	}
}

DOOR_FN(ioctl)
{
	int fd = guest_fd(p, a[0]);
	uint32_t request = (uint32_t)a[1];
	size_t bytes;
	void *arg;

	switch (request) {
	case TCGETS:
		bytes = 36; /* the kernel's struct, not glibc's */
		break;
	case TIOCGWINSZ:
		bytes = sizeof(struct winsize);
		break;
	case FIONREAD:
	case FIONBIO:
		bytes = sizeof(int);
		break;
	case FIOCLEX:
	case FIONCLEX:
		return DOOR_RET(ioctl(fd, request));
	default:
		/* Nothing that changes a terminal: TIOCSTI would type into the host's. */
		return fd < 0 ? -EBADF : -ENOTTY;
	}
	arg = guest_at(p, a[2], bytes);
	if (!arg)
		return -EFAULT;
	return DOOR_RET(syscall(SYS_ioctl, fd, request, arg));
}

static int64_t make_pipe(struct w2c_sys *p, uint64_t at, int flags)
{
	int *out = guest_at(p, at, 2 * sizeof *out), fds[2];

	if (!out)
		return -EFAULT;
	if (flags & ~(O_CLOEXEC | O_NONBLOCK))
		return -EINVAL;
	if (pipe2(fds, flags))
		return -errno;
	return guest_admit_pair(p, fds, out);
}

DOOR_FN(pipe)
{
	return make_pipe(p, a[0], 0);
}

DOOR_FN(pipe2)
{
	return make_pipe(p, a[0], guest_int(a[1]));
}

/* A signal mask without the runtime's own signal. */
static const void *own_mask(const void *mask, uint64_t *ret)
{
	if (!mask)
		return NULL;
	memcpy(ret, mask, sizeof *ret);
	*ret &= ~JOBS_SIGNAL_BIT;
	return ret;
}

static int64_t wait_poll(struct w2c_sys *p, const uint64_t a[6], const struct timespec *ts,
			 const void *mask)
{
	uint64_t count = (uint32_t)a[1];
	struct pollfd *guest, *fds;
	int64_t r;

	if (count > (uint64_t)p->fd_limit * 2)
		return -EINVAL;
	guest = count ? guest_at(p, a[0], count * sizeof *guest) : NULL;
	if (count && !guest)
		return -EFAULT;
	fds = malloc((count + 1) * sizeof *fds);
	if (!fds)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++) {
		fds[i] = guest[i];
		if (fds[i].fd >= p->fd_limit)
			fds[i].fd = INT_MAX; /* POLLNVAL */
	}
	r = signals_call(SYS_ppoll, (long)fds, (long)count, (long)ts, (long)mask, 8, 0);
	for (uint64_t i = 0; r >= 0 && i < count; i++)
		guest[i].revents = fds[i].revents;
	free(fds);
	return r;
}

DOOR_FN(poll)
{
	int ms = guest_int(a[2]);
	struct timespec ts = { ms / 1000, (ms % 1000) * 1000000L };

	return wait_poll(p, a, ms < 0 ? NULL : &ts, NULL);
}

DOOR_FN(ppoll)
{
	struct timespec ts;
	uint64_t set;
	void *mask;
	int r = guest_timespec(p, a[2], &ts);

	if (r < 0 || !guest_opt(p, a[3], 8, &mask))
		return -EFAULT;
	return wait_poll(p, a, r ? &ts : NULL, own_mask(mask, &set));
}

static int64_t wait_select(struct w2c_sys *p, const uint64_t a[6], struct timespec *ts, void *mask)
{
	int n = guest_int(a[0]);
	void *set[3];
	uint64_t masked;
	struct {
		const void *mask;
		size_t bytes;
	} sig = { own_mask(mask, &masked), 8 };

	if (n < 0 || n > FD_SETSIZE)
		return -EINVAL;
	for (int i = 0; i < 3; i++)
		if (!guest_opt(p, a[1 + i], (uint64_t)(n + 63) / 64 * 8, &set[i]))
			return -EFAULT;
	if (n > p->fd_limit)
		n = p->fd_limit;
	return signals_call(SYS_pselect6, n, (long)set[0], (long)set[1], (long)set[2], (long)ts,
			    (long)&sig);
}

DOOR_FN(pselect6)
{
	struct timespec ts;
	uint32_t *pair;
	void *mask = NULL;
	int r = guest_timespec(p, a[4], &ts);

	if (r < 0)
		return -EFAULT;
	if (a[5]) {
		/* A pair of 32-bit words: the mask's address and its size. */
		pair = guest_at(p, a[5], 8);
		if (!pair || !guest_opt(p, pair[0], 8, &mask))
			return -EFAULT;
	}
	return wait_select(p, a, r ? &ts : NULL, mask);
}

DOOR_FN(select)
{
	struct timespec ts = { 0 };
	int r = guest_timespec(p, a[4], &ts);

	if (r < 0)
		return -EFAULT;
	ts.tv_nsec *= 1000; /* from microseconds */
	return wait_select(p, a, r ? &ts : NULL, NULL);
}

DOOR_FN(getdents64)
{
	return transfer(p, SYS_getdents64, a);
}

DOOR_FN(fsync)
{
	return DOOR_RET(fsync(guest_fd(p, a[0])));
}

DOOR_FN(fdatasync)
{
	return DOOR_RET(fdatasync(guest_fd(p, a[0])));
}

/* The guest must not flush the host's disks. */
DOOR_FN(sync)
{
	(void)p;
	(void)a;
	return 0;
}

DOOR_FN(syncfs)
{
	return fcntl(guest_fd(p, a[0]), F_GETFD) < 0 ? -EBADF : 0;
}

DOOR_FN(ftruncate)
{
	return DOOR_RET(ftruncate(guest_fd(p, a[0]), (off_t)a[1]));
}

DOOR_FN(fallocate)
{
	if (guest_int(a[1]) & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE))
		return -EOPNOTSUPP;
	return DOOR_RET(fallocate(guest_fd(p, a[0]), guest_int(a[1]), (off_t)a[2], (off_t)a[3]));
}

DOOR_FN(flock)
{
	return signals_call(SYS_flock, guest_fd(p, a[0]), guest_int(a[1]), 0, 0, 0, 0);
}

DOOR_FN(fadvise64)
{
	return fcntl(guest_fd(p, a[0]), F_GETFD) < 0 ? -EBADF : 0;
}

DOOR_FN(sendfile)
{
	off_t *offset;
	void *at;

	if (!guest_opt(p, a[2], sizeof *offset, &at))
		return -EFAULT;
	offset = at;
	return signals_call(SYS_sendfile, guest_fd(p, a[0]), guest_fd(p, a[1]), (long)offset,
			    (long)(uint32_t)a[3], 0, 0);
}

/* Not ENOSYS: callers take EINVAL as "not for these files" and copy the bytes themselves. */
DOOR_FN(copy_file_range)
{
	(void)p;
	(void)a;
	return -EINVAL;
}

DOOR_FN(splice)
{
	(void)p;
	(void)a;
	return -EINVAL;
}
