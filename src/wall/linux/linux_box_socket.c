/* wall/linux/linux_box_socket.c - sockets of a sandbox's network namespace for the host. Pid 1
 * makes them (inside/init/reaper.c): a socket stays in the namespace that it was made in. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/os.h"
#include "wall/linux/linux_box.h"
#include "wall/linux/plan_send.h"

/* Older headers do not have it. */
enum { NETNS_COOKIE = 71 };

int linux_box_ask_socket(struct box *box, int *ret_fd, struct cordon_error **reterr)
{
	struct linux_box *b = linux_box(box);
	int pair[2];

	if (!b->has_network || b->private_dir[0])
		return err_set(reterr, CORDON_UNSUPPORTED, "the sandbox has no loopback");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
		return err_errno(reterr, errno, "ask the sandbox for a socket");
	cleanup_close int mine = pair[0], theirs = pair[1];
	pthread_mutex_lock(&b->releasing);
	int r = b->base.control_fd < 0 || b->is_gone
			? -EPIPE
			: plan_send_order(CONTROL_SOCKET, theirs, b->base.control_fd);
	pthread_mutex_unlock(&b->releasing);
	if (r == -EPIPE || r == -ECONNRESET)
		return err_set(reterr, CORDON_STATE, "the sandbox has ended");
	if (r < 0)
		return err_errno(reterr, -r, "ask the sandbox for a socket");
	*ret_fd = TAKE_FD(mine);
	return 0;
}

static int option_of(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 ? value : -1;
}

/* Pid 1 is not trusted with this: a socket of our own namespace would lead to the host. */
static bool is_ours(int fd)
{
	uint64_t theirs = 0, mine = 0;
	socklen_t len = sizeof(theirs);
	cleanup_close int own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (getsockopt(fd, SOL_SOCKET, NETNS_COOKIE, &theirs, &len) != 0)
		return false; /* an older kernel; nobody in the sandbox could have got one */
	len = sizeof(mine);
	return own < 0 || getsockopt(own, SOL_SOCKET, NETNS_COOKIE, &mine, &len) != 0 ||
	       mine == theirs;
}

static bool is_new_tcp(int fd)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);

	return option_of(fd, SO_DOMAIN) == AF_INET && option_of(fd, SO_TYPE) == SOCK_STREAM &&
	       option_of(fd, SO_PROTOCOL) == IPPROTO_TCP && option_of(fd, SO_ACCEPTCONN) == 0 &&
	       getpeername(fd, (struct sockaddr *)&peer, &len) != 0 && errno == ENOTCONN;
}

int linux_box_take_socket(int from)
{
	char byte = 0;
	size_t count = 0;
	int fds[1] = { -1 };
	ssize_t n = os_fds_receive(from, &byte, 1, fds, 1, &count);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	cleanup_close int fd = count > 0 ? fds[0] : -1;
	if (n != 1 || fd < 0 || byte != CONTROL_SOCKET)
		return -EPIPE;
	if (!is_new_tcp(fd) || is_ours(fd) || file_set_nonblock(fd, true) < 0)
		return -EPROTO;
	return TAKE_FD(fd);
}
