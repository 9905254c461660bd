/* inside/pod/runtime/door_socket.c - socket pairs within the pod. The only address is the session's
 * gateway, if the policy opens the network. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/door.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inside/pod/runtime/signals.h"

DOOR_FN(socketpair)
{
	int type = guest_int(a[1]), fds[2];
	int flags = type & (SOCK_CLOEXEC | SOCK_NONBLOCK), kind = type & ~flags;
	int *out = guest_at(p, a[3], sizeof fds);

	if (!out)
		return -EFAULT;
	if (guest_int(a[0]) != AF_UNIX || guest_int(a[2]))
		return -EAFNOSUPPORT;
	/* Becomes SEQPACKET: it keeps message boundaries too, but can send only to its peer, unlike
	 * a datagram socket. */
	if (kind == SOCK_DGRAM)
		kind = SOCK_SEQPACKET;
	if (kind != SOCK_STREAM && kind != SOCK_SEQPACKET)
		return -EINVAL;
	if (socketpair(AF_UNIX, kind | flags, 0, fds))
		return -errno;
	return guest_admit_pair(p, fds, out);
}

/* TCP sockets, if there is a gateway. */
DOOR_FN(socket)
{
	int family = guest_int(a[0]), type = guest_int(a[1]), protocol = guest_int(a[2]), fd;
	bool is_stream = (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_STREAM;

	if (family != AF_INET && family != AF_INET6)
		return -EAFNOSUPPORT;
	if (!p->gateway_port || !is_stream || (protocol && protocol != IPPROTO_TCP)) {
		process_deny(p, "socket", is_stream ? "stream" : "datagram");
		return -EACCES;
	}
	if (family != AF_INET)
		return -EAFNOSUPPORT; /* the gateway has no such address */
	fd = socket(AF_INET, type, IPPROTO_TCP);
	return fd < 0 ? -errno : guest_admit(p, fd);
}

/* The requested address as text; false: not an address. */
static bool read_address(const void *at, uint32_t len, struct sockaddr_in *ret, char text[80])
{
	const struct sockaddr_in *four = at;
	const struct sockaddr_in6 *six = at;
	char name[INET6_ADDRSTRLEN] = "?";

	if (len >= sizeof *four && four->sin_family == AF_INET) {
		inet_ntop(AF_INET, &four->sin_addr, name, sizeof name);
		snprintf(text, 80, "%s:%d", name, ntohs(four->sin_port));
		memcpy(ret, four, sizeof *ret);
		return true;
	}
	if (len >= sizeof *six && six->sin6_family == AF_INET6) {
		inet_ntop(AF_INET6, &six->sin6_addr, name, sizeof name);
		snprintf(text, 80, "[%s]:%d", name, ntohs(six->sin6_port));
		return true;
	}
	return false;
}

/* The address is copied first, so that the checked one is used. */
DOOR_FN(connect)
{
	uint32_t len = (uint32_t)a[2];
	struct sockaddr_in address = { 0 };
	const void *at = guest_at(p, a[1], len);
	char text[80];
	union {
		struct sockaddr any;
		char bytes[sizeof(struct sockaddr_in6)];
	} copy = { .bytes = { 0 } };

	if (!at)
		return -EFAULT;
	if (len > sizeof copy)
		return -EINVAL;
	memcpy(&copy, at, len);
	if (!read_address(&copy, len, &address, text))
		return -EAFNOSUPPORT;
	if (!p->gateway_port || address.sin_family != AF_INET ||
	    address.sin_addr.s_addr != htonl(INADDR_LOOPBACK) ||
	    address.sin_port != htons(p->gateway_port)) {
		process_deny(p, "connect", text);
		return p->gateway_port ? -ENETUNREACH : -EACCES;
	}
	return signals_call(SYS_connect, guest_fd(p, a[0]), (long)&address, sizeof address, 0, 0,
			    0);
}

/* Without an address: sends to the other end of the pair. */
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

static bool may_set(int level, int name)
{
	return (level == SOL_SOCKET && (name == SO_SNDBUF || name == SO_RCVBUF ||
					name == SO_KEEPALIVE || name == SO_REUSEADDR)) ||
	       (level == IPPROTO_TCP && name == TCP_NODELAY);
}

DOOR_FN(setsockopt)
{
	int *in = guest_at(p, a[3], sizeof *in), level = guest_int(a[1]), name = guest_int(a[2]);
	int value;

	if (!in || (uint32_t)a[4] < sizeof *in)
		return -EFAULT;
	if (!may_set(level, name))
		return -ENOPROTOOPT;
	value = *in;
	return DOOR_RET(setsockopt(guest_fd(p, a[0]), level, name, &value, sizeof value));
}

/* A pair has a family but no name. A connection has the gateway's. */
static int64_t name_of(struct w2c_sys *p, const uint64_t a[6], bool is_peer)
{
	uint32_t *size = guest_at(p, a[2], sizeof *size), room;
	struct sockaddr_in name = { 0 };
	socklen_t len = sizeof name;
	int fd = guest_fd(p, a[0]);
	void *out;

	if (!size)
		return -EFAULT;
	room = *size;
	out = guest_at(p, a[1], room);
	if (is_peer ? getpeername(fd, (struct sockaddr *)&name, &len)
		    : getsockname(fd, (struct sockaddr *)&name, &len))
		return -errno;
	/* Not connected: bash would take an answer as a sign that a network daemon started it. */
	if (is_peer && name.sin_family != AF_INET)
		return -ENOTCONN;
	len = name.sin_family == AF_INET ? sizeof name : sizeof name.sin_family;
	if (room < sizeof name.sin_family || !out)
		return -EINVAL;
	memcpy(out, &name, room < len ? room : len);
	*size = len;
	return 0;
}

DOOR_FN(getsockname)
{
	return name_of(p, a, false);
}

DOOR_FN(getpeername)
{
	return name_of(p, a, true);
}
