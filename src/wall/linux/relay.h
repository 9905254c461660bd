/* wall/linux/relay.h - the guest's half of the gateway. No process of ours runs in the guest's
 * network namespace. Before the guest is sealed, the process that sets up the namespace opens the
 * listening sockets in it and sends them to the gateway, which accepts on them from outside: a
 * socket stays in the namespace that it was made in.
 *
 * Only system calls, no allocation: safe between clone and exec. Needs only libc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RELAY_PROXY_PORT = 3128, /* 127.0.0.1: HTTP proxy and SOCKS5 */
	RELAY_PORTS_MAX = 64,
	RELAY_SOCKETS_MAX = 5 + 2 * RELAY_PORTS_MAX,
	RELAY_MAGIC = 0x636f7264,
};

/* The message that carries the sockets. */
struct relay_hello {
	uint32_t magic;
	int32_t os_errno;
	bool has_direct, has_v6;
};

struct relay_options {
	int gateway_fd; /* where to send the sockets; the caller owns and closes it; -1: no sockets,
			   only the loopback */
	const uint16_t *ports; /* ports that programs without a proxy may connect to */
	size_t port_count;
	bool only_proxy; /* no fake addresses: neither routes nor port listeners */
};

/* In a new network namespace, with CAP_NET_ADMIN and CAP_NET_BIND_SERVICE in its user namespace:
 * brings loopback up, routes fake addresses to it, opens the sockets and sends them. Returns 0 or
 * -errno; *ret_stage (may be NULL) then says which step failed. */
int relay_open(const struct relay_options *options, const char **ret_stage);
