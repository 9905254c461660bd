/* unit/net/test_address.c - which addresses are public, and how they are written. */
#include "net/gateway/address.h"

#include "harness/test.h"

static struct address parse(const char *text)
{
	struct address a = { 0 };
	bool ok = strchr(text, ':') ? address_parse_v6(text, strlen(text), &a)
				    : address_parse_v4(text, strlen(text), &a);
	if (!ok)
		test_fail(__FILE__, __LINE__, "'%s' is no address", text);
	return a;
}

TEST(classes)
{
	static const struct {
		const char *text;
		enum address_class class;
	} cases[] = {
		{ "1.1.1.1", ADDRESS_PUBLIC },
		{ "8.8.8.8", ADDRESS_PUBLIC },
		{ "9.255.255.255", ADDRESS_PUBLIC },
		{ "10.0.0.0", ADDRESS_PRIVATE },
		{ "10.255.255.255", ADDRESS_PRIVATE },
		{ "11.0.0.0", ADDRESS_PUBLIC },
		{ "0.0.0.0", ADDRESS_UNSPECIFIED },
		{ "0.1.2.3", ADDRESS_UNSPECIFIED },
		{ "100.63.255.255", ADDRESS_PUBLIC },
		{ "100.64.0.0", ADDRESS_SHARED },
		{ "100.127.255.255", ADDRESS_SHARED },
		{ "100.128.0.0", ADDRESS_PUBLIC },
		{ "100.100.100.200", ADDRESS_METADATA },
		{ "127.0.0.1", ADDRESS_LOOPBACK },
		{ "127.255.255.254", ADDRESS_LOOPBACK },
		{ "169.254.0.1", ADDRESS_LINK_LOCAL },
		{ "169.254.169.254", ADDRESS_METADATA },
		{ "169.254.170.2", ADDRESS_METADATA },
		{ "168.63.129.16", ADDRESS_METADATA },
		{ "172.15.255.255", ADDRESS_PUBLIC },
		{ "172.16.0.0", ADDRESS_PRIVATE },
		{ "172.31.255.255", ADDRESS_PRIVATE },
		{ "172.32.0.0", ADDRESS_PUBLIC },
		{ "192.168.1.1", ADDRESS_PRIVATE },
		{ "192.0.0.1", ADDRESS_RESERVED },
		{ "192.0.2.1", ADDRESS_RESERVED },
		{ "198.18.0.1", ADDRESS_RESERVED },
		{ "198.20.0.1", ADDRESS_PUBLIC },
		{ "203.0.113.9", ADDRESS_RESERVED },
		{ "224.0.0.1", ADDRESS_MULTICAST },
		{ "239.255.255.255", ADDRESS_MULTICAST },
		{ "240.0.0.1", ADDRESS_RESERVED },
		{ "255.255.255.255", ADDRESS_RESERVED },
		{ "::", ADDRESS_UNSPECIFIED },
		{ "::1", ADDRESS_LOOPBACK },
		{ "::2", ADDRESS_RESERVED },
		{ "::127.0.0.1", ADDRESS_RESERVED },
		{ "::ffff:127.0.0.1", ADDRESS_LOOPBACK },
		{ "::ffff:a00:1", ADDRESS_PRIVATE },
		{ "::ffff:1.1.1.1", ADDRESS_PUBLIC },
		{ "::ffff:0:127.0.0.1", ADDRESS_RESERVED },
		{ "64:ff9b::127.0.0.1", ADDRESS_LOOPBACK },
		{ "64:ff9b::a9fe:a9fe", ADDRESS_METADATA },
		{ "64:ff9b::1.1.1.1", ADDRESS_PUBLIC },
		{ "64:ff9b:1::1", ADDRESS_RESERVED },
		{ "100::1", ADDRESS_RESERVED },
		{ "2001::1", ADDRESS_RESERVED },
		{ "2001:db8::1", ADDRESS_RESERVED },
		{ "2002:7f00:1::", ADDRESS_RESERVED },
		{ "2606:4700:4700::1111", ADDRESS_PUBLIC },
		{ "2a00::1", ADDRESS_PUBLIC },
		{ "3fff::1", ADDRESS_RESERVED },
		{ "4000::1", ADDRESS_RESERVED },
		{ "fc00::1", ADDRESS_PRIVATE },
		{ "fdff::1", ADDRESS_PRIVATE },
		{ "fd00:ec2::254", ADDRESS_METADATA },
		{ "fe80::1", ADDRESS_LINK_LOCAL },
		{ "febf::1", ADDRESS_LINK_LOCAL },
		{ "fec0::1", ADDRESS_PRIVATE },
		{ "ff02::1", ADDRESS_MULTICAST },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct address a = parse(cases[i].text);
		enum address_class got = address_classify(&a);
		if (got != cases[i].class)
			test_fail(__FILE__, __LINE__, "%s is %s, want %s", cases[i].text,
				  address_class_name(got), address_class_name(cases[i].class));
	}
	struct address none = { 0 };
	ASSERT_EQ(address_classify(&none), ADDRESS_UNKNOWN);
}

TEST(literals_of_the_url_standard)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "127.0.0.1", "127.0.0.1" },
		{ "127.1", "127.0.0.1" },
		{ "127.0.1", "127.0.0.1" },
		{ "2130706433", "127.0.0.1" },
		{ "0x7f000001", "127.0.0.1" },
		{ "0x7F.1", "127.0.0.1" },
		{ "0177.0.0.01", "127.0.0.1" },
		{ "017700000001", "127.0.0.1" },
		{ "0", "0.0.0.0" },
		{ "0x", "0.0.0.0" },
		{ "0x.0x.0", "0.0.0.0" },
		{ "1.2.3.4.", "1.2.3.4" },
		{ "255.255.255.255", "255.255.255.255" },
		{ "4294967295", "255.255.255.255" },
		{ "1.16777215", "1.255.255.255" },
		{ "1.2.65535", "1.2.255.255" },
		{ "0xa9.254.0251.0xfe", "169.254.169.254" },
		{ "4294967296", NULL },
		{ "1.16777216", NULL },
		{ "1.2.65536", NULL },
		{ "256.0.0.1", NULL },
		{ "1.2.3.256", NULL },
		{ "1.2.3.4.5", NULL },
		{ "1..2", NULL },
		{ ".1.2.3", NULL },
		{ "1.2.3.4..", NULL },
		{ "08.0.0.1", NULL },
		{ "0xg", NULL },
		{ "1.2.3.-4", NULL },
		{ " 1.2.3.4", NULL },
		{ "1.2.3.4 ", NULL },
		{ "18446744073709551617", NULL },
		{ "", NULL },
		{ ".", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct address a;
		char text[ADDRESS_TEXT_SIZE];
		bool ok = address_parse_v4(cases[i].text, strlen(cases[i].text), &a);
		if (ok != (cases[i].want != NULL))
			test_fail(__FILE__, __LINE__, "'%s': %d", cases[i].text, ok);
		if (!ok)
			continue;
		address_text(&a, text);
		ASSERT_STREQ(text, cases[i].want);
	}
}

TEST(six)
{
	static const char *const bad[] = { "",
					   ":",
					   ":::",
					   "1::2::3",
					   "1:2:3:4:5:6:7",
					   "fe80::1%eth0",
					   "12345::",
					   "::1.2.3",
					   "::1.2.3.256",
					   "[::1]",
					   "g::",
					   "1:2:3:4:5:6:7:8:9",
					   "::1 " };
	struct address a;
	char text[ADDRESS_TEXT_SIZE];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (address_parse_v6(bad[i], strlen(bad[i]), &a))
			test_fail(__FILE__, __LINE__, "'%s' was taken", bad[i]);
	a = parse("2001:0DB8:0:0:0:0:0:1");
	address_text(&a, text);
	ASSERT_STREQ(text, "2001:db8::1");
	a = parse("::FFFF:192.168.0.1");
	ASSERT_EQ(a.family, 4);
}

TEST(blocks)
{
	struct address_block b;
	struct address a = parse("10.1.2.3");

	ASSERT(address_parse_block("10.0.0.0/8", &b) && address_in_block(&a, &b));
	ASSERT(address_parse_block("10.1.2.0/23", &b) && address_in_block(&a, &b));
	ASSERT(address_parse_block("10.1.0.0/23", &b) && !address_in_block(&a, &b));
	ASSERT(address_parse_block("10.1.2.3", &b) && address_in_block(&a, &b));
	ASSERT(address_parse_block("0.0.0.0/0", &b) && address_in_block(&a, &b));
	ASSERT(address_parse_block("::/0", &b) && !address_in_block(&a, &b));
	ASSERT(!address_parse_block("10.0.0.1/8", &b));
	ASSERT(!address_parse_block("10.0.0.0/33", &b));
	ASSERT(!address_parse_block("10.0.0.0/", &b));
	ASSERT(!address_parse_block("10.0.0.0/-1", &b));
	ASSERT(!address_parse_block("10.0.0.0/8x", &b));
	ASSERT(!address_parse_block("010.0.0.0/8", &b));
	ASSERT(!address_parse_block("example.org", &b));
	ASSERT(address_parse_block("fd00::/8", &b));
	a = parse("fd12::1");
	ASSERT(address_in_block(&a, &b));
	a = parse("fe12::1");
	ASSERT(!address_in_block(&a, &b));
}
