/* wall/linux/probe/bomb.c - attacks by quantity. Each stops slightly above the limit, so that the
 * control outside does no harm. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wall/linux/probe/attacks.h"

enum { MORE_PROCESSES = 20, MORE_FILES = 32, CHUNK = 1 << 20, NOEXEC_SEAL = 8 };

int probe_forks(const struct bait *b)
{
	long want = b->processes + MORE_PROCESSES, made = 0;
	int e = 0, hold[2];
	pid_t pids[4096];
	char c;

	if (want > 4096 || pipe(hold) != 0)
		return NOT_HERE;
	for (; made < want; made++) {
		pids[made] = fork();
		if (pids[made] == 0) { /* waits for us: not every sandbox lets us kill a child */
			close(hold[1]);
			(void)!read(hold[0], &c, 1);
			_exit(0);
		}
		if (pids[made] < 0) {
			e = errno;
			break;
		}
	}
	close(hold[0]);
	close(hold[1]);
	for (long i = 0; i < made; i++)
		(void)probe_wait(pids[i]);
	return e;
}

static void *idle(void *arg)
{
	(void)arg;
	pause();
	return NULL;
}

static int make_threads(const struct bait *b)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (long i = 0; i < b->processes + MORE_PROCESSES; i++) {
		int e = pthread_create(&t, &attr, idle, NULL);
		if (e)
			return e;
	}
	return 0;
}

int probe_threads(const struct bait *b)
{
	return probe_in_child(make_threads, b);
}

/* Touches that much of a mapping, page by page. */
static int touch(size_t bytes, int flags)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return errno;
	for (size_t i = 0; i < bytes; i += 4096)
		((volatile char *)p)[i] = 1;
	return 0;
}

static size_t too_much(const struct bait *b)
{
	return (size_t)(b->memory_bytes + b->memory_bytes / 4 + (32 << 20));
}

static int touch_private(const struct bait *b)
{
	int r = touch(too_much(b), MAP_PRIVATE);

	if (r == 0)
		usleep(300000); /* the supervisor may need a moment: a pod's processes have extra
				   memory to start with */
	return r;
}

int probe_memory(const struct bait *b)
{
	return probe_in_child(touch_private, b);
}

static int touch_shared(const struct bait *b)
{
	int r = touch(too_much(b), MAP_SHARED);

	if (r == 0)
		usleep(300000); /* the supervisor may need a moment */
	return r;
}

int probe_memory_shared(const struct bait *b)
{
	return probe_in_child(touch_shared, b);
}

static int fill_memory_files(const struct bait *b)
{
	static char block[CHUNK];
	size_t left = too_much(b), per_file = (size_t)(b->file_bytes / 2);

	memset(block, 1, sizeof(block));
	while (left > 0) {
		int fd = (int)syscall(SYS_memfd_create, "probe", NOEXEC_SEAL);
		if (fd < 0)
			return errno;
		for (size_t done = 0; done < per_file && left > 0; done += CHUNK) {
			if (write(fd, block, CHUNK) != CHUNK)
				return errno ? errno : EIO;
			left = left > CHUNK ? left - CHUNK : 0;
		}
	}
	usleep(300000);
	return 0;
}

int probe_memory_memfd(const struct bait *b)
{
	return probe_in_child(fill_memory_files, b);
}

/* Four processes, each with a part that one alone may have. */
static int touch_part(const struct bait *b)
{
	int r = touch((size_t)(b->memory_bytes / 2), MAP_PRIVATE);

	if (r == 0)
		usleep(500000);
	return r;
}

int probe_memory_spread(const struct bait *b)
{
	pid_t pids[4];
	int verdict = 0;

	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			probe_exit(touch_part(b));
	}
	for (int i = 0; i < 4; i++) {
		int r = pids[i] < 0 ? EAGAIN : probe_decode(probe_wait(pids[i]));
		verdict = r ? r : verdict;
	}
	return verdict;
}

/* Makes files in a new directory until one is refused, then removes all. */
static int fill_folder(uint64_t files, uint64_t bytes_each)
{
	static char block[CHUNK];
	char path[224], dir[192];
	uint64_t made = 0;
	int e = 0;

	probe_name(dir, sizeof(dir), "cordon-probe-fill");
	if (mkdir(dir, 0700) != 0)
		return errno;
	for (; !e && made < files; made++) {
		snprintf(path, sizeof(path), "%s/%llu", dir, (unsigned long long)made);
		int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		if (fd < 0) {
			e = errno;
			break;
		}
		for (uint64_t done = 0; !e && done < bytes_each; done += CHUNK)
			e = probe_verdict(write(fd, block, CHUNK));
		close(fd);
	}
	for (uint64_t i = 0; i <= made; i++) {
		snprintf(path, sizeof(path), "%s/%llu", dir, (unsigned long long)i);
		(void)unlink(path);
	}
	(void)rmdir(dir);
	return e;
}

int probe_disk(const struct bait *b)
{
	const size_t piece = (size_t)4 * CHUNK;

	return fill_folder(b->fs_bytes / piece + 2, piece);
}

int probe_inodes(const struct bait *b)
{
	return fill_folder(b->file_count + MORE_FILES, 0);
}

static int grow_file(const struct bait *b)
{
	char path[192];

	(void)signal(SIGXFSZ, SIG_IGN);
	probe_name(path, sizeof(path), "cordon-probe-big");
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	(void)unlink(path);
	return probe_verdict(pwrite(fd, "x", 1, (off_t)b->file_bytes));
}

int probe_big_file(const struct bait *b)
{
	return grow_file(b);
}

static int stretch_file(const struct bait *b)
{
	char path[192];

	probe_name(path, sizeof(path), "cordon-probe-sparse");
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	(void)unlink(path);
	return probe_verdict(ftruncate(fd, (off_t)b->file_bytes + 1));
}

int probe_sparse_file(const struct bait *b)
{
	return probe_in_child(stretch_file, b);
}

enum { LOCK_FILES = 60, LOCKS_EACH = 1000 };

static int lock_byte(int fd, off_t at)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };

	return fcntl(fd, F_SETLK, &l);
}

/* Takes separate locks, because adjacent ones would be merged. */
int probe_locks(const struct bait *b)
{
	char path[192];

	(void)b;
	probe_name(path, sizeof(path), "cordon-probe-lock");
	for (int i = 0; i < LOCK_FILES; i++) {
		int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

		if (fd < 0)
			return errno;
		(void)unlink(path);
		for (off_t k = 0; k < LOCKS_EACH; k++)
			if (lock_byte(fd, 2 * k) != 0)
				return errno;
	}
	return 0;
}

/* Locks that outlive the process that took them. */
int probe_locks_shared(const struct bait *b)
{
	long pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);

	(void)b;
	if (pid == 0)
		_exit(0);
	return pid < 0 ? errno : probe_wait((int)pid);
}

/* Things that the kernel counts per user; each sandbox gets a few. */
enum { MANY_INSTANCES = 100, MANY_SIGNALS = 2000 };

int probe_watch_instances(const struct bait *b)
{
	(void)b;
	for (int i = 0; i < MANY_INSTANCES; i++)
		if (syscall(SYS_inotify_init1, 0) < 0)
			return errno;
	return 0;
}

int probe_queued_signals(const struct bait *b)
{
	sigset_t blocked;

	(void)b;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGRTMIN + 5);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	for (int i = 0; i < MANY_SIGNALS; i++)
		if (sigqueue(getpid(), SIGRTMIN + 5, (union sigval){ 0 }) != 0)
			return errno;
	return 0;
}

int probe_timers(const struct bait *b)
{
	struct sigevent none = { .sigev_notify = SIGEV_NONE };
	int id;

	(void)b;
	for (int i = 0; i < MANY_SIGNALS; i++)
		if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &none, &id) != 0)
			return errno;
	return 0;
}

int probe_open_files(const struct bait *b)
{
	for (long i = 0; i < b->open_files + 1; i++)
		if (dup(1) < 0)
			return errno;
	return 0;
}

/* The kernel counts CPU time in ticks, which an emulated or shared processor loses while the clock
 * runs. It needs time to see that the limit was exceeded. */
static int spin(const struct bait *b)
{
	long more_ms = b->is_control ? 300 : 60000;
	struct timespec t;
	volatile unsigned long x = 0;

	do {
		for (int i = 0; i < 1000000; i++)
			x++;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < b->cpu_seconds * 1000 + more_ms);
	return 0;
}

int probe_cpu(const struct bait *b)
{
	return probe_in_child(spin, b);
}
