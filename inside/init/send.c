/* inside/init/send.c - sends and receives descriptors. Part of reaper.h; separate because libguest
 * needs it too. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "inside/init/reaper.h"

int reaper_send(int control, char byte, const int *fds, unsigned count)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} u = { .room = { 0 } };
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (count > 0) {
		msg.msg_control = u.room;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		u.head.cmsg_level = SOL_SOCKET;
		u.head.cmsg_type = SCM_RIGHTS;
		u.head.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&u.head), fds, count * sizeof(int));
	}
	return sendmsg(control, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int reaper_receive_fd(int sock)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} u = { .room = { 0 } };
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = u.room,
			      .msg_controllen = sizeof(u.room) };
	int fd = -1;

	ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	if (n > 0 && msg.msg_controllen >= CMSG_LEN(sizeof(int)) && u.head.cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(&u.head), sizeof(fd));
	return fd;
}
