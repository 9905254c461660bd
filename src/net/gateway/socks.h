/* net/gateway/socks.h - SOCKS5 (RFC 1928), CONNECT only, no authentication. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/gateway/host.h"

enum socks_reply {
	SOCKS_OK = 0,
	SOCKS_FAILURE = 1,
	SOCKS_DENIED = 2,
	SOCKS_HOST_UNREACHABLE = 4,
	SOCKS_REFUSED = 5,
	SOCKS_BAD_COMMAND = 7,
	SOCKS_BAD_ADDRESS = 8,
};

enum { SOCKS_REPLY_SIZE = 10 };

/* Both return the number of bytes used; 0: incomplete, or -CORDON_PROTOCOL. */
ptrdiff_t socks_read_greeting(const uint8_t *bytes, size_t len);
/* On -CORDON_INVALID, *ret_reply is the reply code to send. */
ptrdiff_t socks_read_request(const uint8_t *bytes, size_t len, struct host *ret_host,
			     uint16_t *ret_port, enum socks_reply *ret_reply);
void socks_write_reply(enum socks_reply reply, uint8_t ret[static SOCKS_REPLY_SIZE]);
