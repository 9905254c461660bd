/* net/gateway/refusals.c - see refusals.h. The kernel queues a copy of each refusal before the
 * program sees it, so at the end of an execution all of its refusals are there. */
#include "net/gateway/refusals.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "net/gateway/conn.h"

enum { BATCH = 512, IP_LEAST = 20 };

/* The address and port that refused; false: too short. A socket of IPv6 gets the packet without its
 * IP header. */
static bool parse(const struct sockaddr_storage *from, const uint8_t *packet, size_t len,
		  struct address *ret, uint16_t *ret_port)
{
	bool is_v4 = from->ss_family == AF_INET;
	size_t header = is_v4 && len > 0 ? (size_t)(packet[0] & 15) * 4 : 0;
	struct sockaddr_storage sa = *from;

	if ((is_v4 && header < IP_LEAST) || len < header + 2)
		return false;
	if (is_v4)
		memcpy(&((struct sockaddr_in *)&sa)->sin_port, packet + header, 2);
	else
		memcpy(&((struct sockaddr_in6 *)&sa)->sin6_port, packet + header, 2);
	return address_from_sockaddr((struct sockaddr *)&sa, ret, ret_port);
}

static void tell(struct hub *hub, const struct address *a, uint16_t port)
{
	const struct host *name = fake_address_find(hub->fake_addresses, a);
	struct rule_verdict v = { 0 };
	struct host own;

	if (!name) {
		host_from_address(a, &own);
		name = &own;
	}
	struct rule_query q = { .host = name, .port = port };
	ruleset_decide(hub->config.rules, &q, &v);
	if (!v.allowed)
		request_audit_denial(hub, "network.connect", name, port, NULL, &v);
}

/* Bounded: the socket's buffer holds no more than this. */
static void take(struct hub *hub, int fd,
		 void (*fn)(struct hub *, const struct address *, uint16_t))
{
	for (int i = 0; fd >= 0 && i < BATCH; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t size = sizeof(from);
		uint8_t packet[128];
		struct address a;
		uint16_t port;
		ssize_t n = recvfrom(fd, packet, sizeof(packet), MSG_DONTWAIT,
				     (struct sockaddr *)&from, &size);

		if (n < 0)
			return;
		if (fn && parse(&from, packet, (size_t)n, &a, &port))
			fn(hub, &a, port);
	}
}

void refusals_tell(struct hub *hub)
{
	for (size_t i = 0; i < HUB_REFUSALS; i++)
		take(hub, hub->refusal_fds[i], tell);
}

void refusals_drop(struct hub *hub)
{
	for (size_t i = 0; i < HUB_REFUSALS; i++)
		take(hub, hub->refusal_fds[i], NULL);
}
