/* wall/linux/probe/objects.c - attacks on kernel memory with many small objects. Those that a
 * control group must count (PROBE_CHARGED) hold at least PROBE_CHARGE_BYTES. With empty=1 their
 * processes do everything else and hold nothing, so that the host can compare. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "wall/linux/probe/attacks.h"

enum { SPARE_FDS = 24, MOST_HOLDERS = 40, HOLDER_MS = 30000 };

/* Allocates what it can; 0, or the errno if that was too little. */
typedef int (*fill_fn)(const struct bait *b);

static int room(const struct bait *b, int most)
{
	long left = b->open_files - SPARE_FDS;

	return left < most ? (int)left : most;
}

static _Noreturn void hold(const struct bait *b, fill_fn fill, int out, int until)
{
	int e = b->empty ? 0 : fill(b);
	char c;

	(void)!write(out, &e, sizeof(e));
	(void)!read(until, &c, 1);
	_exit(0);
}

/* Starts all holders; none ends before all hold what they can. */
static int hold_in(const struct bait *b, fill_fn fill, int holders)
{
	int told[2], until[2], started = 0, verdict = 0, e;
	pid_t pids[MOST_HOLDERS];

	if (pipe(told) != 0 || pipe(until) != 0)
		return errno;
	for (; verdict == 0 && started < holders; started++) {
		pids[started] = fork();
		if (pids[started] == 0) {
			close(until[1]);
			close(told[0]);
			hold(b, fill, told[1], until[0]);
		}
		if (pids[started] < 0) {
			verdict = errno;
			break;
		}
	}
	for (int i = 0; verdict == 0 && i < started; i++) {
		/* A killed holder writes nothing, and we hold the write end too, so poll first. */
		struct pollfd p = { .fd = told[0], .events = POLLIN };

		if (poll(&p, 1, HOLDER_MS) <= 0 || read(told[0], &e, sizeof(e)) != sizeof(e))
			verdict = ENOMEM;
		else
			verdict = e;
	}
	close(until[1]);
	for (int i = 0; i < started; i++)
		(void)probe_wait(pids[i]);
	return verdict;
}

/* An epoll item for each pair of descriptors: about 200 bytes. */
static int fill_epoll(const struct bait *b)
{
	struct epoll_event event = { .events = EPOLLIN };
	int count = room(b, 240) / 2, fds[120];

	for (int i = 0; i < count; i++)
		if ((fds[i] = eventfd(0, 0)) < 0)
			return errno;
	for (int k = 0; k < count; k++) {
		int many = epoll_create1(0);

		for (int i = 0; i < count; i++)
			if (epoll_ctl(many, EPOLL_CTL_ADD, fds[i], &event) != 0)
				return errno;
	}
	return 0;
}

int probe_charge_epoll(const struct bait *b)
{
	return hold_in(b, fill_epoll, 12);
}

/* If the user already has too much in pipes, new ones are small. */
static int fill_pipes(const struct bait *b)
{
	static const char block[65536];
	int pair[2], count = room(b, 200) / 2;

	for (int i = 0; i < count; i++) {
		if (pipe2(pair, O_NONBLOCK) != 0)
			return errno;
		if (write(pair[1], block, sizeof(block)) != sizeof(block))
			return EDQUOT;
	}
	return 0;
}

int probe_charge_pipes(const struct bait *b)
{
	int r = hold_in(b, fill_pipes, 5);

	return r == EDQUOT ? NOT_HERE : r;
}

/* Only the sockets themselves: a socket, inode, dentry and file each, about 2 KiB. */
static int fill_sockets(const struct bait *b)
{
	int pair[2], count = room(b, 220) / 2;

	for (int i = 0; i < count; i++)
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
			return errno;
	return 0;
}

int probe_charge_sockets(const struct bait *b)
{
	return hold_in(b, fill_sockets, MOST_HOLDERS);
}

/* Names that do not exist. The kernel caches these (negative dentries) on some file systems. */
enum { NAMES = 60000, NAME_BYTES = 180 };

static bool remembers_names(const char *dir)
{
	struct statfs fs;

	if (statfs(dir, &fs) != 0)
		return false;
	return fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC ||
	       fs.f_type == BTRFS_SUPER_MAGIC || fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* A view may have such a file system only further down. NULL: none. */
static const char *folder_of_names(void)
{
	static const char *const dirs[] = { "/usr", "/usr/lib", "/usr/lib/python3", "/usr/share" };

	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
		if (remembers_names(dirs[i]))
			return dirs[i];
	return NULL;
}

static int fill_names(const struct bait *b)
{
	char path[NAME_BYTES + 96];
	struct stat st;
	struct timespec now;

	(void)b;
	/* New names, which were not looked up before. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	int len = snprintf(path, sizeof(path), "%s/%lx.%lx", folder_of_names(), (long)now.tv_sec,
			   now.tv_nsec);
	memset(path + len, 'x', NAME_BYTES);
	for (int i = 0; i < NAMES; i++) {
		snprintf(path + len + NAME_BYTES, 16, "%d", i);
		if (stat(path, &st) == 0 || errno != ENOENT)
			return errno;
	}
	return 0;
}

int probe_charge_names(const struct bait *b)
{
	return folder_of_names() ? hold_in(b, fill_names, 1) : NOT_HERE;
}

/* Each further name of a file costs memory. */
int probe_links(const struct bait *b)
{
	char file[192], name[224];
	uint64_t made = 0;
	int e = 0;

	probe_name(file, sizeof(file), "cordon-probe-linked");
	int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	close(fd);
	for (; e == 0 && made < b->file_count + 32; made++) {
		snprintf(name, sizeof(name), "%s.%llu", file, (unsigned long long)made);
		e = probe_verdict(link(file, name));
	}
	for (uint64_t i = 0; i < made; i++) {
		snprintf(name, sizeof(name), "%s.%llu", file, (unsigned long long)i);
		(void)unlink(name);
	}
	(void)unlink(file);
	return e;
}

/* One watch per instance and file. */
enum { WATCHERS = 8, WATCHED = 200 };

int probe_watches(const struct bait *b)
{
	char dir[192], name[224];
	int fds[WATCHERS], e = 0;

	(void)b;
	probe_name(dir, sizeof(dir), "cordon-probe-watched");
	if (mkdir(dir, 0700) != 0)
		return errno;
	for (int i = 0; e == 0 && i < WATCHERS; i++)
		e = probe_verdict(fds[i] = inotify_init1(IN_CLOEXEC));
	for (int k = 0; e == 0 && k < WATCHED; k++) {
		snprintf(name, sizeof(name), "%s/%d", dir, k);
		int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

		e = probe_verdict(fd);
		if (fd >= 0)
			close(fd);
		for (int i = 0; e == 0 && i < WATCHERS; i++)
			e = probe_verdict(inotify_add_watch(fds[i], name, IN_MODIFY));
	}
	for (int k = 0; k < WATCHED; k++) {
		snprintf(name, sizeof(name), "%s/%d", dir, k);
		(void)unlink(name);
	}
	(void)rmdir(dir);
	return e;
}
