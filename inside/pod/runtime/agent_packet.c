/* inside/pod/runtime/agent_packet.c - sends and receives messages of the agent's socket, with
 * descriptors. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/agent.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "inside/pod/runtime/signals.h"

static void take_descriptors(struct msghdr *msg, int fds[3])
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		int got[8];

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(got, CMSG_DATA(c), (n < 8 ? n : 8) * sizeof(int));
		for (size_t i = 0; i < n && i < 8; i++) {
			if (i < 3 && fds[i] < 0)
				fds[i] = got[i];
			else
				close(got[i]);
		}
	}
}

int agent_receive(int fd, struct agent_packet *ret)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
	struct iovec iov[2] = { { &ret->head, sizeof ret->head },
				{ ret->payload, AGENT_COMMAND_MAX } };
	struct msghdr msg = { .msg_iov = iov,
			      .msg_iovlen = 2,
			      .msg_control = control,
			      .msg_controllen = sizeof control };
	int64_t n;

	memset(&ret->head, 0, sizeof ret->head);
	ret->fds[0] = ret->fds[1] = ret->fds[2] = -1;
	ret->bytes = 0;
	/* Reads what is there, even if a signal has also arrived. */
	n = syscall(SYS_recvmsg, fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0)
		n = signals_call(SYS_recvmsg, fd, (long)&msg, MSG_CMSG_CLOEXEC, 0, 0, 0);
	if (n <= 0)
		return (int)n;
	take_descriptors(&msg, ret->fds);
	if ((msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || n < (int64_t)sizeof ret->head) {
		for (int i = 0; i < 3; i++)
			if (ret->fds[i] >= 0)
				close(ret->fds[i]);
		return -EMSGSIZE;
	}
	ret->bytes = (size_t)n - sizeof ret->head;
	ret->payload[ret->bytes] = 0;
	return (int)ret->bytes;
}

int agent_send(int fd, const struct agent_message *head, const void *payload, size_t bytes,
	       const int fds[3])
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))] = { 0 };
	struct iovec iov[2] = { { (void *)head, sizeof *head }, { (void *)payload, bytes } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	if (fds) {
		struct cmsghdr *c = (struct cmsghdr *)control;

		msg.msg_control = control;
		msg.msg_controllen = sizeof control;
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(3 * sizeof(int));
		memcpy(CMSG_DATA(c), fds, 3 * sizeof(int));
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void process_deny(const struct w2c_sys *p, const char *operation, const char *target)
{
	struct iovec told[3] = { { (void *)operation, strlen(operation) },
				 { " ", 1 },
				 { (void *)target, strlen(target) } };
	struct msghdr msg = { .msg_iov = told, .msg_iovlen = 3 };
	int fd = p->fds[PRIVATE_DENIALS];

	if (fd < 0)
		return;
	if (sendmsg(fd, &msg, MSG_NOSIGNAL) < 0 && errno == ENOTSOCK && writev(fd, told, 3) < 0)
		errno = 0;
	errno = 0; /* it does not matter if the host no longer listens */
}
