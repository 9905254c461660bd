/* wall/linux/relay.h - the guest's half of the gateway. There is no process of ours in the guest's
 * namespace: before the guest is sealed, whoever sets its namespace up opens the listening sockets
 * there and hands them to the gateway, which accepts on them from outside. A socket belongs to the
 * namespace that it was made in for as long as it lives.
 *
 * Only system calls, no allocation: safe between clone and exec. Nothing but libc is needed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RELAY_PROXY_PORT = 3128, /* 127.0.0.1: HTTP proxy and SOCKS5 */
	RELAY_PORTS_MAX = 64,
	RELAY_SOCKETS_MAX = 3 + 2 * RELAY_PORTS_MAX,
	RELAY_MAGIC = 0x636f7264,
};

/* The message that carries the sockets. */
struct relay_hello {
	uint32_t magic;
	int32_t os_errno;
	bool has_direct, has_v6;
};

struct relay_options {
	int gateway_fd;        /* where the sockets go; stays the caller's, who closes it */
	const uint16_t *ports; /* that programs without a proxy may connect to */
	size_t port_count;
	bool only_proxy; /* no synthetic addresses: neither routes nor port listeners */
};

/* In a fresh network namespace, with CAP_NET_ADMIN and CAP_NET_BIND_SERVICE in the user namespace
 * that owns it: loopback up, synthetic addresses routed to it, sockets opened and sent. Returns 0
 * or -errno; *ret_stage (may be NULL) then tells which part failed, in words. */
int relay_open(const struct relay_options *options, const char **ret_stage);
