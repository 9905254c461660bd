/* wall/linux/probe/socket_attacks.c - attacks over sockets. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "wall/linux/probe/attacks.h"

#ifndef SO_ATTACH_REUSEPORT_CBPF
#define SO_ATTACH_REUSEPORT_CBPF 51
#endif

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static int open_family(int family, int type, int protocol)
{
	return probe_verdict(socket(family, type | SOCK_CLOEXEC, protocol));
}

/* If the policy opens the network, these two families are allowed. */
int probe_inet(const struct bait *b)
{
	return b->network && !b->is_control ? NOT_HERE : open_family(AF_INET, SOCK_STREAM, 0);
}

int probe_inet6(const struct bait *b)
{
	if (b->network && !b->is_control)
		return NOT_HERE;
	int r = open_family(AF_INET6, SOCK_STREAM, 0);

	return r == EAFNOSUPPORT && b->is_control ? NOT_HERE : r;
}

int probe_inet_datagram(const struct bait *b)
{
	(void)b;
	return open_family(AF_INET, SOCK_DGRAM, 0);
}

int probe_raw(const struct bait *b)
{
	(void)b;
	return open_family(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

int probe_packet(const struct bait *b)
{
	(void)b;
	return open_family(AF_PACKET, SOCK_RAW, 0);
}

int probe_netlink(const struct bait *b)
{
	(void)b;
	return open_family(AF_NETLINK, SOCK_RAW, 0);
}

int probe_vsock(const struct bait *b)
{
	int r = open_family(AF_VSOCK, SOCK_STREAM, 0);

	return r == EAFNOSUPPORT && b->is_control ? NOT_HERE : r;
}

int probe_unix_stream(const struct bait *b)
{
	(void)b;
	return open_family(AF_UNIX, SOCK_STREAM, 0);
}

int probe_any_family(const struct bait *b)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET };
	int last = EPERM;

	for (int family = 0; family < 48; family++)
		for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
			bool is_tcp = types[i] == SOCK_STREAM &&
				      (family == AF_INET || family == AF_INET6);
			last = open_family(family, types[i],
					   is_tcp && b->network ? IPPROTO_MPTCP : 0);
			if (last == 0)
				return 0;
		}
	return last;
}

static int reach_inet(int type, long port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0)
		return errno;
	/* The first datagram to a closed port is accepted; the second one gets the error. */
	if (type == SOCK_STREAM)
		return 0;
	if (send(fd, "x", 1, MSG_NOSIGNAL) < 0)
		return errno;
	usleep(2000);
	return probe_verdict(send(fd, "x", 1, MSG_NOSIGNAL));
}

int probe_tcp_host(const struct bait *b)
{
	return reach_inet(SOCK_STREAM, b->tcp);
}

int probe_udp_host(const struct bait *b)
{
	return reach_inet(SOCK_DGRAM, b->udp);
}

static socklen_t unix_address(struct sockaddr_un *ret, const char *name, int is_abstract)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	size_t len = name ? strlen(name) : 0;
	if (len > sizeof(ret->sun_path) - 2)
		len = sizeof(ret->sun_path) - 2;
	memcpy(ret->sun_path + is_abstract, name ? name : "", len);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
}

static int reach_unix(const char *name, int is_abstract)
{
	struct sockaddr_un to;
	socklen_t len = unix_address(&to, name, is_abstract);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	return probe_verdict(connect(fd, (struct sockaddr *)&to, len));
}

int probe_abstract_host(const struct bait *b)
{
	return reach_unix(b->abstract, 1);
}

int probe_path_host(const struct bait *b)
{
	return reach_unix(b->path, 0);
}

/* socket() is refused, but socketpair() is not, and a datagram names its receiver. */
static int mail(const char *name, int is_abstract)
{
	struct sockaddr_un to;
	socklen_t len = unix_address(&to, name, is_abstract);
	struct iovec iov = { (char[]){ "x" }, 1 };
	struct msghdr msg = {
		.msg_name = &to, .msg_namelen = len, .msg_iov = &iov, .msg_iovlen = 1
	};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) != 0)
		return errno;
	return probe_verdict(sendmsg(pair[0], &msg, MSG_NOSIGNAL));
}

int probe_sendmsg_abstract(const struct bait *b)
{
	return mail(b->abstract_mail, 1);
}

int probe_sendmsg_path(const struct bait *b)
{
	return mail(b->path_mail, 0);
}

/* Sends to a daemon's socket in a directory that the policy shows read-only, with a descriptor. */
static int mail_with_descriptor(const struct bait *b, int type, bool is_many)
{
	struct sockaddr_un to;
	char name[96];
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} u = { .room = { 0 } };
	struct iovec iov = { (char[]){ "x" }, 1 };
	int pair[2];

	snprintf(name, sizeof(name), "%s/mail", b->is_control ? b->shared_host : b->shared);
	struct mmsghdr msg = { .msg_hdr = { .msg_name = &to,
					    .msg_namelen = unix_address(&to, name, 0),
					    .msg_iov = &iov,
					    .msg_iovlen = 1,
					    .msg_control = u.room,
					    .msg_controllen = sizeof(u.room) } };
	u.head.cmsg_level = SOL_SOCKET;
	u.head.cmsg_type = SCM_RIGHTS;
	u.head.cmsg_len = CMSG_LEN(sizeof(int));
	memset(CMSG_DATA(&u.head), 0, sizeof(int)); /* standard input */
	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) != 0)
		return errno;
	long n = is_many ? sendmmsg(pair[0], &msg, 1, MSG_NOSIGNAL | MSG_DONTWAIT)
			 : sendmsg(pair[0], &msg.msg_hdr, MSG_NOSIGNAL | MSG_DONTWAIT);
	/* Nobody reads it: the queue that is full belongs to the daemon. */
	return n < 0 && errno == EAGAIN ? 0 : probe_verdict(n);
}

int probe_mail_mounted(const struct bait *b)
{
	return mail_with_descriptor(b, SOCK_DGRAM, false);
}

int probe_mail_many(const struct bait *b)
{
	return mail_with_descriptor(b, SOCK_DGRAM, true);
}

int probe_mail_raw(const struct bait *b)
{
	return mail_with_descriptor(b, SOCK_RAW, false);
}

/* A classic BPF program of one instruction that accepts everything. */
static int set_filter(int option)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, 0xffffffff) };
	struct sock_fprog prog = { .len = 1, .filter = code };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return errno;
	return probe_verdict(setsockopt(pair[0], SOL_SOCKET, option, &prog, sizeof(prog)));
}

int probe_socket_filter(const struct bait *b)
{
	(void)b;
	return set_filter(SO_ATTACH_FILTER);
}

int probe_socket_filter_group(const struct bait *b)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_fprog prog = { .len = 1, .filter = code };
	int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)b;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes)) != 0)
		return errno;
	return probe_verdict(
		setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &prog, sizeof(prog)));
}

int probe_socket_filter_lock(const struct bait *b)
{
	int yes = 1, pair[2];

	(void)b;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return errno;
	return probe_verdict(setsockopt(pair[0], SOL_SOCKET, SO_LOCK_FILTER, &yes, sizeof(yes)));
}

/* Asks the gateway's proxy for the host's loopback, in both its protocols. */
static int ask_gateway(const void *words, size_t len, const char *yes, size_t yes_len)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(3128),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct timeval patience = { .tv_sec = 5 };
	char answer[64] = "";
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0)
		return errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (send(fd, words, len, MSG_NOSIGNAL) < 0 || recv(fd, answer, yes_len, MSG_WAITALL) < 0)
		return errno;
	close(fd);
	return memcmp(answer, yes, yes_len) == 0 ? 0 : EACCES;
}

int probe_gateway_host(const struct bait *b)
{
	unsigned char socks[] = { 5,
				  1,
				  0,
				  5,
				  1,
				  0,
				  1,
				  127,
				  0,
				  0,
				  1,
				  (unsigned char)(b->tcp >> 8),
				  (unsigned char)b->tcp };
	char connect_to[96];

	if (b->is_control) /* there is no gateway outside */
		return reach_inet(SOCK_STREAM, b->tcp);
	int len = snprintf(connect_to, sizeof(connect_to),
			   "CONNECT 127.0.0.1:%ld HTTP/1.1\r\nHost: 127.0.0.1:%ld\r\n\r\n", b->tcp,
			   b->tcp);
	int r = ask_gateway(connect_to, (size_t)len, "HTTP/1.1 200", 12);
	return r == 0 ? 0 : ask_gateway(socks, sizeof(socks), "\5\0\5\0", 4);
}

int probe_net_tables(const struct bait *b)
{
	char port[16];

	snprintf(port, sizeof(port), ":%04lX ", b->tcp);
	return probe_find_secret("/proc/self/net/tcp", port);
}
