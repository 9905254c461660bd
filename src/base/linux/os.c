/* base/linux/os.c - see os.h. */
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

void os_random(void *ret, size_t len)
{
	char *at = ret;

	while (len > 0) {
		ssize_t n = getrandom(at, len, 0);
		if (n < 0 && errno != EINTR)
			abort(); /* the library's only abort: a token must never be guessable */
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
	}
}

int os_memory_file(const char *name, bool is_sealable)
{
	unsigned flags = is_sealable ? MFD_CLOEXEC | MFD_ALLOW_SEALING : MFD_CLOEXEC;
	int fd = memfd_create(name, flags | (is_sealable ? MFD_NOEXEC_SEAL : 0));

	if (fd < 0 && errno == EINVAL && is_sealable) /* before Linux 6.3 */
		fd = memfd_create(name, flags);
	return fd < 0 ? -errno : fd;
}

int os_seal(int fd)
{
	enum { SEALS = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

	return fcntl(fd, F_ADD_SEALS, SEALS) < 0 ? -errno : 0;
}

int os_seal_size(int fd)
{
	return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0 ? -errno : 0;
}

int os_seal_bytes(int fd)
{
	return fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SEAL) < 0 ? -errno : 0;
}

enum { LARGE_BYTES = 1 << 20 };

void os_memory_release(void)
{
#ifdef M_MMAP_THRESHOLD
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
#endif
}

int os_event_open(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int os_event_set(int fd)
{
	static const uint64_t one = 1;

	/* EAGAIN: the counter is full, so it is readable anyway. */
	return write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN ? -errno : 0;
}

void os_event_clear(int fd)
{
	uint64_t count;

	(void)!read(fd, &count, sizeof(count));
}

int os_timer_open(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

/* An all-zero time leaves a timerfd unarmed. */
int os_timer_set(int fd, deadline_ns at)
{
	enum { NS_PER_SECOND = 1000000000 };
	struct itimerspec when = { .it_value = { .tv_sec = (time_t)(at / NS_PER_SECOND),
						 .tv_nsec = (long)(at % NS_PER_SECOND) } };

	return timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL) < 0 ? -errno : 0;
}

void os_timer_clear(int fd)
{
	uint64_t count;

	(void)!read(fd, &count, sizeof(count));
}

int os_watch_open(void)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int os_watch_add(int set, int fd, void *tag)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = tag };

	return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int os_watch_add_hangup(int set, int fd, void *tag)
{
	struct epoll_event event = { .events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = tag };

	return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

void os_watch_remove(int set, int fd)
{
	(void)epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL);
}

bool os_watch_next(int set, void **ret_tag)
{
	struct epoll_event event;

	if (epoll_wait(set, &event, 1, 0) <= 0)
		return false;
	*ret_tag = event.data.ptr;
	return true;
}

int os_process_open(pid_t pid)
{
	int fd = pidfd_open(pid, 0);

	return fd < 0 ? -errno : fd;
}

void os_thread_name(const char *name)
{
	(void)prctl(PR_SET_NAME, name);
}

int os_process_hide(void)
{
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

bool os_program_path(char *ret, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", ret, size - 1);

	ret[n > 0 ? n : 0] = '\0';
	return n > 0;
}

int os_send_file(int to_fd, int file_fd, off_t *at, size_t len)
{
	ssize_t n = sendfile(to_fd, file_fd, at, len);

	return n > 0 ? 0 : n < 0 ? -errno : -EIO;
}

void os_pipe_widen(int fd)
{
	enum { WIDE = 1 << 20 };

	(void)fcntl(fd, F_SETPIPE_SZ, WIDE);
}

int os_peer_uid(int fd, uid_t *ret)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0)
		return -errno;
	*ret = who.uid;
	return 0;
}

/* Room for descriptors, aligned as the kernel wants it. */
union fds_room {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(OS_FDS * sizeof(int))];
};

ssize_t os_fds_send(int fd, const void *bytes, size_t len, const int *fds, size_t count)
{
	union fds_room room = { .bytes = { 0 } };
	struct iovec iov = { .iov_base = (void *)bytes, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = room.bytes,
			      .msg_controllen = CMSG_SPACE(count * sizeof(int)) };

	if (count > OS_FDS) {
		errno = EINVAL;
		return -1;
	}
	room.head.cmsg_level = SOL_SOCKET;
	room.head.cmsg_type = SCM_RIGHTS;
	room.head.cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(&room.head), fds, count * sizeof(int));
	return sendmsg(fd, &msg, MSG_NOSIGNAL);
}

/* The kernel may give one more than asked for: room is rounded up. */
static void take_fds(struct msghdr *msg, int *ret_fds, size_t max, size_t *ret_count)
{
	*ret_count = 0;
	for (struct cmsghdr *m = CMSG_FIRSTHDR(msg); m; m = CMSG_NXTHDR(msg, m)) {
		if (m->cmsg_level != SOL_SOCKET || m->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (m->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int got;

			memcpy(&got, CMSG_DATA(m) + i * sizeof(int), sizeof(got));
			if (*ret_count < max)
				ret_fds[(*ret_count)++] = got;
			else
				(void)close(got);
		}
	}
}

ssize_t os_fds_receive(int fd, void *bytes, size_t len, int *ret_fds, size_t max, size_t *ret_count)
{
	union fds_room room;
	struct iovec iov = { .iov_base = bytes, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = room.bytes,
			      .msg_controllen =
				      CMSG_SPACE((max < OS_FDS ? max : OS_FDS) * sizeof(int)) };

	*ret_count = 0;
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n >= 0)
		take_fds(&msg, ret_fds, max, ret_count);
	return n;
}

int os_open_beneath(int dir_fd, const char *path, int flags, mode_t mode, unsigned how)
{
	enum { TRIES = 64 };
	bool creates = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
	struct open_how open_how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.mode = creates ? mode & 07777 : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS |
			   (how & OS_NO_LINKS ? RESOLVE_NO_SYMLINKS : 0) |
			   (how & OS_NO_MOUNTS ? RESOLVE_NO_XDEV : 0),
	};
	long fd = -1;

	/* EAGAIN: a rename on the way of a "..", or a lease. Both may pass. */
	for (int i = 0; i < TRIES; i++) {
		fd = syscall(SYS_openat2, dir_fd, path, &open_how, sizeof(open_how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

/* A file system without RENAME_NOREPLACE: link(2) does the same. */
int os_rename_new(int dir_fd, const char *from, const char *to)
{
	if (renameat2(dir_fd, from, dir_fd, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (linkat(dir_fd, from, dir_fd, to, 0) < 0)
		return -errno;
	(void)unlinkat(dir_fd, from, 0);
	return 0;
}

int os_is_in_memory(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return -errno;
	return fs.f_type == TMPFS_MAGIC;
}

/* Raw system calls, because libc would change the ids of all threads. */
uid_t os_file_uid(uid_t to)
{
	return (uid_t)syscall(SYS_setfsuid, to);
}

gid_t os_file_gid(gid_t to)
{
	return (gid_t)syscall(SYS_setfsgid, to);
}

ssize_t os_attribute_list(int fd, char *names, size_t size)
{
	ssize_t n = flistxattr(fd, names, size);

	return n < 0 ? -errno : n;
}

ssize_t os_attribute_get(int fd, const char *name, void *value, size_t size)
{
	ssize_t n = fgetxattr(fd, name, value, size);

	return n < 0 ? -errno : n;
}

int os_attribute_set(int fd, const char *name, const void *value, size_t len)
{
	return fsetxattr(fd, name, value, len, 0) == 0 ? 0 : -errno;
}

int os_attribute_remove(int fd, const char *name)
{
	return fremovexattr(fd, name) == 0 ? 0 : -errno;
}
