/* net/gateway/host.h - gives every host name one spelling, so that the name the policy checks is
 * the name that is connected. Follows the URL standard (case, percent escapes, IDNA, octal and hex
 * addresses) and is stricter: only letters, digits, '-', '_' and '.', no empty label. */
#pragma once

#include "base/error.h"
#include "net/gateway/address.h"

enum { HOST_NAME_MAX_LEN = 253, HOST_TEXT_SIZE = 256 };

struct host {
	char name[HOST_TEXT_SIZE]; /* lower case, ASCII, no trailing dot; "[…]" for IPv6 */
	struct address addr;       /* set if the name is an address literal */
};

/* The host part of a URL, a Host header (without port) or a CONNECT target. */
int host_parse(const char *text, size_t len, struct host *ret, struct cordon_error **reterr);
/* The same for names that are not URLs (DNS, SNI, SOCKS): a '%' is an error. */
int host_parse_plain(const char *text, size_t len, struct host *ret, struct cordon_error **reterr);
/* "host", "host:port" or "[v6]:port". Without a port, *ret_port is unchanged. */
int host_parse_authority(const char *text, size_t len, struct host *ret, uint16_t *ret_port,
			 struct cordon_error **reterr);
/* Makes the name of an address: "192.0.2.1" or "[2001:db8::1]". */
void host_from_address(const struct address *a, struct host *ret);

bool host_is_literal(const struct host *h);
bool host_equal(const struct host *a, const struct host *b);
/* Equal, or "localhost" for a loopback address. */
bool host_agrees(const struct host *named, const struct host *target);
/* Sub-domains only: "a.example.org" and "b.a.example.org" for suffix "example.org". */
bool host_is_below(const struct host *h, const char *suffix);

/* Decimal, 1 to 65535, nothing else. */
bool host_parse_port(const char *text, size_t len, uint16_t *ret);
