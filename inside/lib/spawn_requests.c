/* inside/lib/spawn_requests.c - a template waits for spawn requests (docs/wire.md). In C for all
 * guests: an interpreter that runs no code of its own between two forks does not modify the pages
 * that it shares with its sessions. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside/lib/pages.h"
#include "inside/lib/prefault.h"

enum { WIRE = 3, FDS = 11, MAX_FDS = 2 * FDS, TOKEN = 64, LINE = 4096 };

/* fork.c */
int cordon_guest_fork(const int *fds);

/* One thread, and the session has its own copy. */
static struct {
	char text[LINE];
	size_t len;
	int fds[MAX_FDS]; /* received, and not used by a request yet */
	size_t count;
} in;

static void take_fds(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (in.count < MAX_FDS)
				in.fds[in.count++] = fd;
			else
				close(fd);
		}
	}
}

/* Reads once; false: end of the stream. */
static bool fill(void)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(FDS * sizeof(int))];
	} u;
	struct iovec iov = { .iov_base = in.text + in.len, .iov_len = LINE - in.len };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = u.room,
			    .msg_controllen = sizeof(u.room) };
	ssize_t n;

	do
		n = recvmsg(WIRE, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	in.len += (size_t)n;
	take_fds(&m);
	return true;
}

static void drop(size_t n)
{
	in.len -= n;
	memmove(in.text, in.text + n, in.len);
	explicit_bzero(in.text + in.len, n); /* it contained the token */
}

static void drop_fds(void)
{
	in.count -= FDS;
	memmove(in.fds, in.fds + FDS, in.count * sizeof(int));
}

/* The token of the next spawn request; its descriptors are the first in in.fds. False: there will
 * be none. The lines come from the trusted host, so they are not checked. */
static bool next_request(char token[TOKEN])
{
	static const char key[] = "\"token\":\"", spawn[] = "{\"type\":\"spawn\"";

	for (;;) {
		char *end = memchr(in.text, '\n', in.len);

		if (!end) {
			if (in.len == LINE || !fill())
				return false;
			continue;
		}
		size_t len = (size_t)(end - in.text) + 1;
		const char *at = memmem(in.text, len, key, sizeof(key) - 1);
		bool is_spawn = len > sizeof(spawn) && in.count >= FDS &&
				memcmp(in.text, spawn, sizeof(spawn) - 1) == 0 && at &&
				(size_t)(end - at) > sizeof(key) - 1 + TOKEN;

		if (is_spawn)
			memcpy(token, at + sizeof(key) - 1, TOKEN);
		else if (memmem(in.text, len, "\"exit\"", 6))
			return false;
		drop(len);
		if (is_spawn)
			return true;
	}
}

/* In the session: moves its descriptors to their numbers. The library has closed its own. */
static void move_in(void)
{
	dup3(in.fds[0], WIRE, O_CLOEXEC);
	for (int i = 0; i < 3; i++)
		dup2(in.fds[i + 1], i);
	for (int i = 0; i < 4; i++)
		close(in.fds[i]);
}

static void say_hello(const char *head, const char *token, const char *tail)
{
	struct iovec v[] = { { (void *)(uintptr_t)head, strlen(head) },
			     { (void *)(uintptr_t)token, TOKEN },
			     { (void *)(uintptr_t)tail, strlen(tail) } };

	if (writev(WIRE, v, 3) < 0)
		_exit(0);
}

static void fill_state(char *state, size_t size)
{
	while (size > 0) {
		ssize_t n = getrandom(state, size, 0);

		if (n < 0 && errno != EINTR)
			_exit(1);
		if (n > 0) {
			state += n;
			size -= (size_t)n;
		}
	}
}

/* What a session does first, before the interpreter runs. */
enum { STATES = 4 };
static struct {
	void (*after)(void);
	struct {
		void *at;
		size_t size;
	} states[STATES];
	size_t count;
} first;

/* Registers these bytes, a generator's state, to be filled from the kernel's randomness in every
 * session; false: no room. */
__attribute__((visibility("default"))) int cordon_guest_renew(void *state, size_t size);
/* Registers a function to be called in every session. */
__attribute__((visibility("default"))) void cordon_guest_after(void (*call)(void));

int cordon_guest_renew(void *state, size_t size)
{
	if (first.count == STATES)
		return 0;
	first.states[first.count].at = state;
	first.states[first.count++].size = size;
	return 1;
}

void cordon_guest_after(void (*call)(void))
{
	first.after = call;
}

static void begin(void)
{
	for (size_t i = 0; i < first.count; i++)
		fill_state(first.states[i].at, first.states[i].size);
	if (first.after)
		first.after();
}

/* What a session is sent before and for its first execution; NULL: unknown. */
static const char *rehearsal;
enum { REHEARSAL_MS = 5000 };

/* Runs in one fork of the template, which serves nobody, what the host sends a session first, to
 * find out which pages that writes. */
__attribute__((visibility("default"))) void cordon_guest_rehearse(const char *lines);

void cordon_guest_rehearse(const char *lines)
{
	rehearsal = lines;
}

/* Waits for its first line. */
static bool has_answered(int fd)
{
	char text[4096];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	while (poll(&p, 1, REHEARSAL_MS) > 0 && (n = read(fd, text, sizeof(text))) > 0)
		if (memchr(text, '\n', (size_t)n))
			return true;
	return false;
}

/* True: in the fork. */
static bool scout(void)
{
	int pair[2];
	size_t len = rehearsal ? strlen(rehearsal) : 0;

	if (!rehearsal || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return false;
	long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		dup3(pair[1], WIRE, O_CLOEXEC);
		close(pair[0]);
		close(pair[1]);
		begin();
		return true;
	}
	close(pair[1]);
	if (pid > 0 && write(pair[0], rehearsal, len) == (ssize_t)len && has_answered(pair[0]))
		prefault_learn((pid_t)pid);
	if (pid > 0) {
		(void)kill((pid_t)pid, SIGKILL);
		(void)waitpid((pid_t)pid, NULL, 0);
	}
	close(pair[0]);
	return false;
}

/* Returns in each session, with its descriptors in place, its hello sent (head, token, tail) and
 * size bytes at state (a generator's; NULL: none) filled from the kernel's randomness. Never
 * returns in the template. */
__attribute__((visibility("default"))) void cordon_guest_serve(const char *head, const char *tail,
							       void *state, size_t size);

void cordon_guest_serve(const char *head, const char *tail, void *state, size_t size)
{
	char token[TOKEN];

	(void)unsetenv("LD_BIND_NOW"); /* only for the template */
	/* Free memory need not be mapped and copied in every session. */
	(void)malloc_trim(0);
	pages_fill_holes();
	pages_put_into_files();
	pages_collapse();
	if (scout())
		return;
	while (next_request(token)) {
		int fds[FDS];

		memcpy(fds, in.fds, sizeof(fds));
		if (cordon_guest_fork(fds) == 0) {
			move_in();
			say_hello(head, token, tail);
			fill_state(state, size);
			explicit_bzero(token, sizeof(token));
			explicit_bzero(in.text, sizeof(in.text));
			prefault_copy();
			begin();
			return;
		}
		explicit_bzero(token, sizeof(token));
		for (int i = 0; i < FDS; i++)
			close(fds[i]);
		drop_fds();
	}
	_exit(0);
}
