/* pod/door_socket.c - socket pairs inside one process tree; an address is never reached. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "door.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "signals.h"

DOOR_FN(socketpair)
{
	int type = guest_int(a[1]), fds[2];
	int *out = guest_at(p, a[3], sizeof fds);

	if (!out)
		return -EFAULT;
	if (guest_int(a[0]) != AF_UNIX || guest_int(a[2]))
		return -EAFNOSUPPORT;
	if ((type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) != SOCK_STREAM &&
	    (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) != SOCK_DGRAM &&
	    (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) != SOCK_SEQPACKET)
		return -EINVAL;
	if (socketpair(AF_UNIX, type, 0, fds))
		return -errno;
	return guest_admit_pair(p, fds, out);
}

DOOR_FN(socket)
{
	(void)p;
	(void)a;
	return -EACCES;
}

DOOR_FN(connect)
{
	(void)p;
	(void)a;
	return -EACCES;
}

/* No address: to the other end of the pair. */
DOOR_FN(sendto)
{
	uint64_t len = (uint32_t)a[2];
	void *buf = len ? guest_at(p, a[1], len) : p->memory->data;

	if (!buf)
		return -EFAULT;
	if (a[4])
		return -EACCES;
	if (guest_int(a[3]) & ~(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR))
		return -EINVAL;
	return signals_call(SYS_sendto, guest_fd(p, a[0]), (long)buf, (long)len, guest_int(a[3]), 0,
			    0);
}

DOOR_FN(recvfrom)
{
	uint64_t len = (uint32_t)a[2];
	void *buf = len ? guest_at(p, a[1], len) : p->memory->data, *size;

	if (!buf || !guest_opt(p, a[5], 4, &size))
		return -EFAULT;
	if (guest_int(a[3]) & ~(MSG_DONTWAIT | MSG_PEEK | MSG_WAITALL | MSG_TRUNC))
		return -EINVAL;
	if (size)
		memset(size, 0, 4); /* the other end has no name */
	return signals_call(SYS_recvfrom, guest_fd(p, a[0]), (long)buf, (long)len, guest_int(a[3]),
			    0, 0);
}

DOOR_FN(shutdown)
{
	return DOOR_RET(shutdown(guest_fd(p, a[0]), guest_int(a[1])));
}

static bool is_known_option(int level, int name)
{
	return level == SOL_SOCKET &&
	       (name == SO_TYPE || name == SO_ERROR || name == SO_SNDBUF || name == SO_RCVBUF ||
		name == SO_DOMAIN || name == SO_PROTOCOL || name == SO_ACCEPTCONN);
}

DOOR_FN(getsockopt)
{
	uint32_t *size = guest_at(p, a[4], sizeof *size);
	socklen_t len = sizeof(int);
	int value = 0;
	void *out;

	if (!size || *size < sizeof value || !(out = guest_at(p, a[3], sizeof value)))
		return -EFAULT;
	if (!is_known_option(guest_int(a[1]), guest_int(a[2])))
		return -ENOPROTOOPT;
	if (getsockopt(guest_fd(p, a[0]), SOL_SOCKET, guest_int(a[2]), &value, &len))
		return -errno;
	memcpy(out, &value, sizeof value);
	*size = sizeof value;
	return 0;
}

DOOR_FN(setsockopt)
{
	int *in = guest_at(p, a[3], sizeof *in);

	if (!in || (uint32_t)a[4] < sizeof *in)
		return -EFAULT;
	if (guest_int(a[1]) != SOL_SOCKET ||
	    (guest_int(a[2]) != SO_SNDBUF && guest_int(a[2]) != SO_RCVBUF))
		return -ENOPROTOOPT;
	return DOOR_RET(setsockopt(guest_fd(p, a[0]), SOL_SOCKET, guest_int(a[2]), in, sizeof *in));
}

/* A pair has a family and no name. */
static int64_t name_of(struct w2c_sys *p, const uint64_t a[6])
{
	uint32_t *size = guest_at(p, a[2], sizeof *size);
	uint16_t family = AF_UNIX;
	socklen_t len = sizeof(int);
	int type;
	void *out;

	if (!size)
		return -EFAULT;
	if (getsockopt(guest_fd(p, a[0]), SOL_SOCKET, SO_TYPE, &type, &len))
		return -errno;
	out = guest_at(p, a[1], sizeof family);
	if (*size < sizeof family || !out)
		return -EINVAL;
	memcpy(out, &family, sizeof family);
	*size = sizeof family;
	return 0;
}

DOOR_FN(getsockname)
{
	return name_of(p, a);
}

/* Not connected to anywhere: bash takes an answer for a sign that a network daemon started it. */
DOOR_FN(getpeername)
{
	int64_t r = name_of(p, a);

	return r ? r : -ENOTCONN;
}
