/* inside/guests/node/node_buffer.c - see node_buffer.h. */
#include "inside/guests/node/node_buffer.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

int buffer_receive(void *to, size_t size, int *ret_fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { to, size };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n;

	do
		n = recvmsg(3, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
	return (int)n;
}

bool buffer_fill(int fd, size_t at, const void *bytes, size_t len)
{
	size_t skip = at % (size_t)sysconf(_SC_PAGESIZE);

	if (len == 0)
		return true;
	char *map =
		mmap(NULL, len + skip, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(at - skip));
	if (map == MAP_FAILED)
		return false;
	memcpy(map + skip, bytes, len);
	(void)munmap(map, len + skip);
	return true;
}
