/* inside/pod/runtime/pod_template.c - a warm cordon-pod that forks a session for every spawn
 * request. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/socket.h>
#include <unistd.h>

#include "inside/guests/sh/host_wire.h"
#include "inside/lib/wire_json.h"
#include "inside/pod/runtime/bridge.h"
#include "inside/pod/runtime/path.h"

enum { SPAWN_FDS = 11, LINE_MAX_BYTES = 1 << 20 };

/* inside/lib/fork.c: 0 in the session, its pid in the template, -1 when none could be made. */
int cordon_guest_fork(const int *fds);

struct requests {
	struct bytes in;
	int fds[2 * SPAWN_FDS];
	size_t fd_count;
};

static void keep_descriptors(struct requests *q, struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (q->fd_count < sizeof(q->fds) / sizeof(*q->fds))
				q->fds[q->fd_count++] = fd;
			else
				close(fd);
		}
	}
}

/* Nothing else may read the wire: a plain read would drop descriptors. */
static void receive(struct requests *q)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int[2 * SPAWN_FDS]))];
	char buf[65536];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(HOST_WIRE, &msg, 0);

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0 || q->in.len > LINE_MAX_BYTES)
		_exit(0); /* the host is gone */
	keep_descriptors(q, &msg);
	bytes_add(&q->in, buf, (size_t)n);
}

/* In the session: puts its wire and streams in place. */
static void arrange(const int *fds)
{
	for (int i = 0; i < 4; i++)
		if (dup2(fds[i], i ? i - 1 : HOST_WIRE) < 0)
			_exit(125);
	for (int i = 0; i < 4; i++)
		if (fds[i] > HOST_WIRE)
			close(fds[i]); /* the library has closed its own copies */
}

/* 1: this process is the session now. */
static int spawn(struct requests *q, struct json message, char token[HOST_TOKEN_DIGITS + 1])
{
	struct bytes text = { 0 };
	int session = 0;

	json_string(json_get(message, "token"), &text);
	if (text.len == HOST_TOKEN_DIGITS && q->fd_count >= SPAWN_FDS) {
		memcpy(token, text.data, HOST_TOKEN_DIGITS);
		token[HOST_TOKEN_DIGITS] = 0;
		session = cordon_guest_fork(q->fds) == 0;
		if (session)
			arrange(q->fds);
	}
	for (size_t i = 0; !session && i < q->fd_count; i++)
		close(q->fds[i]);
	q->fd_count = 0;
	bytes_done(&text);
	return session;
}

const char *template_serve(struct w2c_sys *p, const char *token)
{
	static struct requests q;
	static char of_session[HOST_TOKEN_DIGITS + 1];

	bridge_hello(token, true);
	for (;;) {
		char *end;

		while (!q.in.len || !(end = memchr(q.in.data, '\n', q.in.len)))
			receive(&q);
		size_t len = (size_t)(end - q.in.data);
		struct json m = { q.in.data, len };
		bool is_good = json_check(q.in.data, len);

		if (is_good && json_is(json_get(m, "type"), "exit"))
			_exit(0);
		if (is_good && json_is(json_get(m, "type"), "spawn") && spawn(&q, m, of_session)) {
			bytes_done(&q.in);
			path_find_proc(p); /* its own proc is mounted over the template's */
			return of_session;
		}
		bytes_drop(&q.in, len + 1);
	}
}
