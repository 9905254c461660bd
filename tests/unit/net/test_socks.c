/* unit/net/test_socks.c - greetings and requests of SOCKS5. */
#include "net/gateway/socks.h"

#include "harness/test.h"

#define BYTES(s) (const uint8_t *)(s), sizeof(s) - 1

TEST(greeting)
{
	ASSERT_EQ(socks_read_greeting(BYTES("")), 0);
	ASSERT_EQ(socks_read_greeting(BYTES("\5")), 0);
	ASSERT_EQ(socks_read_greeting(BYTES("\5\2\2")), 0);
	ASSERT_EQ(socks_read_greeting(BYTES("\5\2\2\0")), 4);
	ASSERT_EQ(socks_read_greeting(BYTES("\5\1\0rest")), 3);
	ASSERT_EQ(socks_read_greeting(BYTES("\5\1\2")), -CORDON_PROTOCOL);
	ASSERT_EQ(socks_read_greeting(BYTES("\4\1\0")), -CORDON_PROTOCOL);
}

TEST(request)
{
	struct host h;
	uint16_t port;
	enum socks_reply reply;

	ASSERT_EQ(socks_read_request(BYTES("\5\1\0\3\6A.test\1\xbb"), &h, &port, &reply), 13);
	ASSERT_STREQ(h.name, "a.test");
	ASSERT_EQ(port, 443);
	ASSERT_EQ(socks_read_request(BYTES("\5\1\0\3\6A.test\1"), &h, &port, &reply), 0);
	ASSERT_EQ(socks_read_request(BYTES("\5\1\0\1\x5d\xb8\xd8\x22\0\x50"), &h, &port, &reply),
		  10);
	ASSERT_STREQ(h.name, "93.184.216.34");
	ASSERT_EQ(socks_read_request(BYTES("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1\0\x50"),
				     &h, &port, &reply),
		  22);
	ASSERT_STREQ(h.name, "127.0.0.1");
	ASSERT_EQ(socks_read_request(BYTES("\5\2\0\1\1\1\1\1\0\x50"), &h, &port, &reply),
		  -CORDON_INVALID);
	ASSERT_EQ(reply, SOCKS_BAD_COMMAND);
	ASSERT_EQ(socks_read_request(BYTES("\5\1\0\2\1\1\1\1\0\x50"), &h, &port, &reply),
		  -CORDON_INVALID);
	ASSERT_EQ(socks_read_request(BYTES("\5\1\0\1\1\1\1\1\0\0"), &h, &port, &reply),
		  -CORDON_INVALID);
	ASSERT_EQ(socks_read_request(BYTES("\5\1\0\3\3a b\0\x50"), &h, &port, &reply),
		  -CORDON_INVALID);
	ASSERT_EQ(socks_read_request(BYTES("\5\1\1\3\1a\0\x50"), &h, &port, &reply),
		  -CORDON_PROTOCOL);
	/* The text of an address is an address, not a name. */
	ASSERT_EQ(socks_read_request(BYTES("\5\1\0\3\0110x7f.0.0.1\0\x50"), &h, &port, &reply), 16);
	ASSERT(host_is_literal(&h));
}
