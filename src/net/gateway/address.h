/* net/gateway/address.h - IP addresses: strict parsing, address blocks, and which addresses are not
 * public. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { ADDRESS_TEXT_SIZE = 48 };

/* Zero: no address. */
struct address {
	uint8_t family; /* 0, 4 or 6 */
	uint8_t bytes[16];
};

struct address_block {
	struct address base;
	unsigned bits;
};

/* Kinds of addresses. All but ADDRESS_PUBLIC must be named in the policy to be reached. */
enum address_class {
	ADDRESS_UNKNOWN,
	ADDRESS_UNSPECIFIED,
	ADDRESS_LOOPBACK,
	ADDRESS_PRIVATE,
	ADDRESS_LINK_LOCAL,
	ADDRESS_METADATA, /* cloud machines get credentials there */
	ADDRESS_SHARED,   /* carrier-grade NAT, 100.64.0.0/10 */
	ADDRESS_MULTICAST,
	ADDRESS_RESERVED,
	ADDRESS_PUBLIC,
};

/* As in the URL standard: 1 to 4 parts, each decimal, 0octal or 0xhex. False: not an address. */
bool address_parse_v4(const char *text, size_t len, struct address *ret);
/* Without brackets; a zone is refused. IPv4-mapped addresses become IPv4. */
bool address_parse_v6(const char *text, size_t len, struct address *ret);
/* "10.0.0.0/8", "fd00::/8" (bits beyond the prefix must be 0) or a plain address. */
bool address_parse_block(const char *text, struct address_block *ret);

bool address_equal(const struct address *a, const struct address *b);
bool address_in_block(const struct address *a, const struct address_block *b);
enum address_class address_classify(const struct address *a);
const char *address_class_name(enum address_class c); /* "a private address" */

/* "192.0.2.1", "2001:db8::1" (RFC 5952), without brackets. */
void address_text(const struct address *a, char ret[static ADDRESS_TEXT_SIZE]);

/* To and from socket addresses; false: another family. */
bool address_from_sockaddr(const struct sockaddr *sa, struct address *ret, uint16_t *ret_port);
socklen_t address_to_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *ret);
