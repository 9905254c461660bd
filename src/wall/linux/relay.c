/* wall/linux/relay.c - see relay.h. */
#include "wall/linux/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LOOPBACK_INDEX = 1, BACKLOG = 512 };

static int bring_loopback_up(void)
{
	struct ifreq ifr = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int r = 0;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, SIOCGIFFLAGS, &ifr) < 0)
		r = -errno;
	if (r == 0 && !(ifr.ifr_flags & IFF_UP)) {
		ifr.ifr_flags |= IFF_UP;
		if (ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
			r = -errno;
	}
	(void)close(fd);
	return r;
}

struct route_request {
	struct nlmsghdr header;
	struct rtmsg route;
	char attributes[64];
};

static void add_attribute(struct route_request *q, unsigned short type, const void *data,
			  unsigned short size)
{
	struct rtattr *a = (void *)((char *)q + NLMSG_ALIGN(q->header.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(size);
	memcpy(RTA_DATA(a), data, size);
	q->header.nlmsg_len = NLMSG_ALIGN(q->header.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

/* "ip route add local PREFIX dev lo": makes every address below the prefix local. */
static int add_route(int fd, int family, const void *prefix, unsigned char bits)
{
	struct route_request q = {
		.header = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
			    .nlmsg_type = RTM_NEWROUTE,
			    .nlmsg_flags =
				    NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE },
		.route = { .rtm_family = (unsigned char)family,
			   .rtm_dst_len = bits,
			   .rtm_table = RT_TABLE_LOCAL,
			   .rtm_protocol = RTPROT_STATIC,
			   .rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
			   .rtm_type = RTN_LOCAL },
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[512];
	} answer;
	int index = LOOPBACK_INDEX;

	add_attribute(&q, RTA_DST, prefix, family == AF_INET ? 4 : 16);
	add_attribute(&q, RTA_OIF, &index, sizeof(index));
	if (send(fd, &q, q.header.nlmsg_len, 0) < 0)
		return -errno;
	ssize_t n = recv(fd, &answer, sizeof(answer), 0);
	if (n < 0)
		return -errno;
	if (n < (ssize_t)(sizeof(answer.header) + sizeof(answer.error)) ||
	    answer.header.nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return answer.error.error;
}

static int add_routes(bool *ret_v6)
{
	/* The same prefixes as in fake_address.h: 198.18.0.0/15 and fd63:6f72:646f:6e00::/64. */
	static const unsigned char v4[4] = { 198, 18, 0, 0 };
	static const unsigned char v6[16] = { 0xfd, 0x63, 0x6f, 0x72, 0x64, 0x6f, 0x6e };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	int r = add_route(fd, AF_INET, v4, 15);
	/* A kernel without IPv6 has no such route and does not need it. */
	*ret_v6 = r == 0 && add_route(fd, AF_INET6, v6, 64) == 0;
	(void)close(fd);
	return r;
}

struct socket_list {
	int fds[RELAY_SOCKETS_MAX];
	size_t count;
};

static int open_socket(struct socket_list *l, int type, const struct sockaddr *sa, socklen_t len)
{
	int one = 1;

	if (l->count == RELAY_SOCKETS_MAX)
		return -EMFILE;
	int fd = socket(sa->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	l->fds[l->count++] = fd;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    (sa->sa_family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0) ||
	    bind(fd, sa, len) < 0 || (type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
		return -errno;
	return 0;
}

static int open_v4(struct socket_list *l, int type, uint32_t address, uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(address) };
	return open_socket(l, type, (struct sockaddr *)&sa, sizeof(sa));
}

static int open_v6(struct socket_list *l, uint16_t port)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	return open_socket(l, SOCK_STREAM, (struct sockaddr *)&sa, sizeof(sa));
}

static int open_ports(struct socket_list *l, const struct relay_options *o, bool v6)
{
	for (size_t i = 0; i < o->port_count && i < RELAY_PORTS_MAX; i++) {
		uint16_t port = o->ports[i];
		if (port == RELAY_PROXY_PORT || port == 53) /* only through the proxy */
			continue;
		int r = open_v4(l, SOCK_STREAM, INADDR_ANY, port);
		if (r == 0 && v6)
			r = open_v6(l, port);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Gets a copy of what the kernel answers where nothing listens: RST and ACK, with sequence number
 * 0. So the gateway learns of connections that never reach it. Not every kernel gives this to us,
 * and nothing depends on it. */
static void open_refusals(struct socket_list *l, int family)
{
	struct sock_filter code[] = {
		/* the length of the IP header, which a socket of IPv6 does not see */
		family == AF_INET ? (struct sock_filter)BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0)
				  : (struct sock_filter)BPF_STMT(BPF_LDX | BPF_IMM, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, 13),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x14, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_IND, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 128),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(*code), .filter = code };

	if (l->count == RELAY_SOCKETS_MAX)
		return;
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	if (fd < 0)
		return;
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0)
		(void)close(fd);
	else
		l->fds[l->count++] = fd;
}

static int send_sockets(int gateway_fd, const struct socket_list *l, struct relay_hello *hello)
{
	union {
		char bytes[CMSG_SPACE(RELAY_SOCKETS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { hello, sizeof(*hello) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = CMSG_SPACE(l->count * sizeof(int)) };
	struct cmsghdr *m = CMSG_FIRSTHDR(&msg);

	m->cmsg_level = SOL_SOCKET;
	m->cmsg_type = SCM_RIGHTS;
	m->cmsg_len = CMSG_LEN(l->count * sizeof(int));
	memcpy(CMSG_DATA(m), l->fds, l->count * sizeof(int));
	return sendmsg(gateway_fd, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int open_all(const struct relay_options *o, struct socket_list *l, struct relay_hello *hello,
		    const char **stage)
{
	*stage = "bring the loopback up";
	int r = bring_loopback_up();
	if (r == 0 && !o->only_proxy) {
		*stage = "route the fake addresses";
		r = add_routes(&hello->has_v6);
		hello->has_direct = r == 0;
	}
	if (r == 0) {
		*stage = "listen for the proxy";
		r = open_v4(l, SOCK_STREAM, INADDR_LOOPBACK, RELAY_PROXY_PORT);
	}
	if (r == 0 && !o->only_proxy) {
		*stage = "listen for DNS";
		r = open_v4(l, SOCK_STREAM, INADDR_LOOPBACK, 53);
		if (r == 0)
			r = open_v4(l, SOCK_DGRAM, INADDR_LOOPBACK, 53);
	}
	if (r == 0 && !o->only_proxy) {
		*stage = "listen on the open ports";
		r = open_ports(l, o, hello->has_v6);
	}
	if (r == 0) {
		open_refusals(l, AF_INET);
		open_refusals(l, AF_INET6);
	}
	return r;
}

int relay_open(const struct relay_options *options, const char **ret_stage)
{
	struct socket_list l = { 0 };
	struct relay_hello hello = { .magic = RELAY_MAGIC };
	const char *stage = "bring the loopback up";

	if (options->gateway_fd < 0)
		return bring_loopback_up();
	int r = open_all(options, &l, &hello, &stage);
	if (r == 0) {
		stage = "send the sockets";
		r = send_sockets(options->gateway_fd, &l, &hello);
	}
	for (size_t i = 0; i < l.count; i++)
		(void)close(l.fds[i]);
	if (ret_stage)
		*ret_stage = r < 0 ? stage : "";
	return r;
}
