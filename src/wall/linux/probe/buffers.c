/* wall/linux/probe/buffers.c - attacks on kernel memory: page tables, sockets. Each holds more than
 * the sandbox may have, in as many processes as that takes. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wall/linux/probe/attacks.h"

enum { HOLDERS = 16, PAIRS = 100, BLOCK = 65536 };

static size_t too_much(const struct bait *b)
{
	return (size_t)(b->memory_bytes + b->memory_bytes / 4 + (32 << 20));
}

/* A page that is only read is the shared zero page, but the page table that leads to it is not
 * shared. */
static int read_far_apart(const struct bait *b)
{
	const size_t apart = (size_t)2 << 20, tables = too_much(b) / 4096;
	volatile char *p = mmap(NULL, tables * apart, PROT_READ,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return errno;
	(void)madvise((void *)(uintptr_t)p, tables * apart, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < tables; i++)
		(void)p[i * apart];
	usleep(300000); /* the supervisor may need a moment */
	return 0;
}

int probe_memory_tables(const struct bait *b)
{
	return probe_in_child(read_far_apart, b);
}

/* Writes until the socket is full; returns how much. */
static size_t fill(int fd)
{
	static const char block[BLOCK];
	size_t all = 0;

	for (ssize_t n; (n = write(fd, block, sizeof(block))) > 0;)
		all += (size_t)n;
	return all;
}

/* Writes to `out` how much one process could hold, and holds it until `until` is closed. */
static _Noreturn void hold(int (*open_pair)(int ret[2]), int out, int until)
{
	size_t all = 0;
	char c;

	for (int i = 0; i < PAIRS; i++) {
		int pair[2];

		if (open_pair(pair) != 0)
			break;
		all += fill(pair[1]);
	}
	(void)!write(out, &all, sizeof(all));
	(void)!read(until, &c, 1);
	_exit(0);
}

static int hold_all(int (*open_pair)(int ret[2]), size_t want)
{
	int told[2], until[2];
	pid_t pids[HOLDERS];
	size_t sum = 0, one;
	int started = 0;

	if (pipe(told) != 0 || pipe(until) != 0)
		return errno;
	while (started < HOLDERS && sum < want) {
		pids[started] = fork();
		if (pids[started] == 0) {
			close(until[1]);
			close(told[0]);
			hold(open_pair, told[1], until[0]);
		}
		if (pids[started] < 0)
			break;
		started++;
		/* A killed holder writes nothing, and we hold the write end too, so poll first. */
		struct pollfd p = { .fd = told[0], .events = POLLIN };
		if (poll(&p, 1, 5000) <= 0)
			break;
		sum += read(told[0], &one, sizeof(one)) == sizeof(one) ? one : 0;
	}
	close(until[1]);
	for (int i = 0; i < started; i++)
		(void)probe_wait(pids[i]);
	return sum >= want ? 0 : ENOMEM;
}

static int open_unix(int ret[2])
{
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret);
}

static int open_tcp(int ret[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(at);
	int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (door < 0 || bind(door, (struct sockaddr *)&at, len) != 0 || listen(door, 1) != 0 ||
	    getsockname(door, (struct sockaddr *)&at, &len) != 0)
		return -1;
	ret[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ret[1] < 0 || connect(ret[1], (struct sockaddr *)&at, len) != 0)
		return -1;
	ret[0] = accept4(door, NULL, NULL, SOCK_CLOEXEC);
	close(door);
	return ret[0] < 0 || fcntl(ret[1], F_SETFL, O_NONBLOCK) != 0 ? -1 : 0;
}

static int hold_pairs(const struct bait *b)
{
	return hold_all(open_unix, too_much(b));
}

/* Only a control group counts these. Without one, the result says so. */
int probe_memory_pairs(const struct bait *b)
{
	if (!b->groups && !b->is_control)
		return NOT_HERE;
	return probe_in_child(hold_pairs, b);
}

static int hold_tcp(const struct bait *b)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	close(fd);
	return hold_all(open_tcp, too_much(b));
}

int probe_memory_tcp(const struct bait *b)
{
	if (!b->groups && !b->is_control)
		return NOT_HERE;
	return probe_in_child(hold_tcp, b);
}
