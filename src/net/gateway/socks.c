/* net/gateway/socks.c - see socks.h. */
#include "net/gateway/socks.h"

#include <string.h>

enum { VERSION = 5, CONNECT = 1, TYPE_V4 = 1, TYPE_NAME = 3, TYPE_V6 = 4 };

ptrdiff_t socks_read_greeting(const uint8_t *bytes, size_t len)
{
	if (len >= 1 && bytes[0] != VERSION)
		return -CORDON_PROTOCOL;
	if (len < 2)
		return 0;
	size_t methods = bytes[1];
	if (len < 2 + methods)
		return 0;
	/* 0: no authentication, the only method we support */
	return memchr(bytes + 2, 0, methods) ? (ptrdiff_t)(2 + methods) : -CORDON_PROTOCOL;
}

static size_t address_size(const uint8_t *bytes)
{
	switch (bytes[3]) {
	case TYPE_V4:
		return 4;
	case TYPE_V6:
		return 16;
	case TYPE_NAME:
		return (size_t)bytes[4] + 1;
	default:
		return 0;
	}
}

ptrdiff_t socks_read_request(const uint8_t *bytes, size_t len, struct host *ret_host,
			     uint16_t *ret_port, enum socks_reply *ret_reply)
{
	if (len < 5)
		return 0;
	if (bytes[0] != VERSION || bytes[2] != 0)
		return -CORDON_PROTOCOL;
	size_t size = address_size(bytes);
	*ret_reply = bytes[1] != CONNECT ? SOCKS_BAD_COMMAND : SOCKS_BAD_ADDRESS;
	if (bytes[1] != CONNECT || size == 0)
		return -CORDON_INVALID;
	if (len < 4 + size + 2)
		return 0;
	*ret_port = (uint16_t)(bytes[4 + size] << 8 | bytes[5 + size]);
	if (*ret_port == 0)
		return -CORDON_INVALID;
	if (bytes[3] == TYPE_NAME) {
		if (host_parse_plain((const char *)bytes + 5, size - 1, ret_host, NULL) < 0)
			return -CORDON_INVALID;
	} else {
		struct address a = { .family = bytes[3] == TYPE_V4 ? 4 : 6 };
		char text[ADDRESS_TEXT_SIZE];
		memcpy(a.bytes, bytes + 4, size);
		/* Converts via the text form, which gives a mapped address its one spelling. */
		if (a.family == 6) {
			address_text(&a, text);
			(void)address_parse_v6(text, strlen(text), &a);
		}
		host_from_address(&a, ret_host);
	}
	return (ptrdiff_t)(4 + size + 2);
}

void socks_write_reply(enum socks_reply reply, uint8_t ret[static SOCKS_REPLY_SIZE])
{
	memset(ret, 0, SOCKS_REPLY_SIZE);
	ret[0] = VERSION;
	ret[1] = (uint8_t)reply;
	ret[3] = TYPE_V4;
}
