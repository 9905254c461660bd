/* unit/net/test_dns.c - queries of the guest: allowed names get an address, others do not exist. */
#include "net/gateway/dns.h"

#include "harness/test.h"
#include "net/gateway/fake_address.h"

static char asked[HOST_TEXT_SIZE];

static enum dns_verdict lookup(const struct host *name, struct dns_addresses *ret, void *arg)
{
	strcpy(asked, name->name);
	if (strcmp(name->name, "full.test") == 0)
		return DNS_FAILURE;
	if (strcmp(name->name, "a.test") != 0)
		return DNS_NO_SUCH_NAME;
	return fake_address_add(arg, name, &ret->v4, &ret->v6) == 0 ? DNS_HAS_ADDRESS : DNS_FAILURE;
}

static uint8_t out[DNS_MAX];

/* The name as labels in wire form, e.g. "\1a\4test". */
static size_t ask(const char *labels, unsigned type, unsigned class)
{
	uint8_t q[300] = { 0x12, 0x34, 1, 0, 0, 1 };
	size_t n = strlen(labels) + 1;
	cleanup_fake_address struct fake_address *s = NULL;

	if (fake_address_new(&s, NULL) < 0)
		return 0;
	memcpy(q + 12, labels, n);
	q[12 + n + 1] = (uint8_t)type;
	q[12 + n + 3] = (uint8_t) class;
	asked[0] = '\0';
	return dns_answer(q, 12 + n + 4, lookup, s, out);
}

static unsigned code(void)
{
	return out[3] & 15u;
}

TEST(allowed)
{
	ASSERT_EQ(ask("\1A\4test", 1, 1), 12 + 12 + 16);
	ASSERT_EQ(out[0] << 8 | out[1], 0x1234);
	ASSERT_EQ(code(), 0);
	ASSERT_EQ(out[7], 1);
	ASSERT(memcmp(out + 36, "\xc6\x12\0\x10", 4) == 0); /* 198.18.0.16 */
	ASSERT_EQ(ask("\1a\4test", 28, 1), 12 + 12 + 28);
	ASSERT_EQ(out[7], 1);
	ASSERT_EQ(ask("\1a\4test", 15, 1), 12 + 12); /* MX: there is none, but the name is */
	ASSERT_EQ(code(), 0);
	ASSERT_EQ(ask("\1a\4test", 255, 1), 12 + 12 + 16 + 28);
}

TEST(denied_and_broken)
{
	ASSERT_EQ(ask("\1b\4test", 1, 1), 12 + 12);
	ASSERT_EQ(code(), 3);
	ASSERT_EQ(out[7], 0);
	ASSERT_EQ(ask("\4full\4test", 1, 1), 12 + 15);
	ASSERT_EQ(code(), 2);
	ASSERT_EQ(ask("\1a\4test", 1, 3), 12 + 12); /* CHAOS */
	ASSERT_EQ(code(), 3);
	ASSERT_EQ(ask("\6a.test", 1, 1), 12); /* a dot inside a label is another name */
	ASSERT_EQ(code(), 1);
	ASSERT_STREQ(asked, "");
	ASSERT_EQ(ask("\3"
		      "127\1\x30\1\x30\1\x31",
		      1, 1),
		  12 + 15); /* an address is not looked up */
	ASSERT_EQ(code(), 3);
	ASSERT_STREQ(asked, "");
	ASSERT_EQ(ask("\xc0\x0c", 1, 1), 12);
	ASSERT_EQ(code(), 1);
	ASSERT_EQ(ask("", 1, 1), 12 + 5); /* the root */
	ASSERT_EQ(code(), 3);
}

TEST(headers)
{
	uint8_t q[] = { 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 1, 0, 1 };

	ASSERT_EQ(dns_answer(q, 11, lookup, NULL, out), 0);
	ASSERT_EQ(dns_answer(q, sizeof(q), lookup, NULL, out), sizeof(q));
	q[2] = 0x80;
	ASSERT_EQ(dns_answer(q, sizeof(q), lookup, NULL, out), 0);
	q[2] = 0x28; /* update */
	ASSERT_EQ(dns_answer(q, sizeof(q), lookup, NULL, out), 12);
	ASSERT_EQ(code(), 4);
	q[2] = 1;
	q[5] = 2;
	ASSERT_EQ(dns_answer(q, sizeof(q), lookup, NULL, out), 12);
	ASSERT_EQ(code(), 1);
	q[5] = 1;
	q[7] = 1; /* an answer in a query */
	ASSERT_EQ(dns_answer(q, sizeof(q), lookup, NULL, out), 12);
	ASSERT_EQ(code(), 1);
}

TEST(synthetic_addresses_are_bounded_and_tell_the_name)
{
	cleanup_fake_address struct fake_address *s = NULL;
	struct host h = { 0 };
	struct address v4, v6, again4, again6;

	ASSERT_EQ(fake_address_new(&s, NULL), 0);
	for (int i = 0; i < FAKE_ADDRESS_MAX; i++) {
		snprintf(h.name, sizeof(h.name), "h%d.test", i);
		ASSERT_EQ(fake_address_add(s, &h, &v4, &v6), 0);
		ASSERT_EQ(fake_address_add(s, &h, &again4, &again6), 0);
		ASSERT(address_equal(&v4, &again4) && address_equal(&v6, &again6));
		ASSERT_STREQ(fake_address_find(s, &v4)->name, h.name);
		ASSERT_STREQ(fake_address_find(s, &v6)->name, h.name);
	}
	strcpy(h.name, "more.test");
	ASSERT_EQ(fake_address_add(s, &h, &v4, &v6), -CORDON_LIMIT);
	v6.bytes[9] = 1;
	ASSERT(!fake_address_find(s, &v6));
	v4.bytes[1] = 19;
	ASSERT(!fake_address_find(s, &v4));
	v4.bytes[0] = 10;
	ASSERT(!fake_address_find(s, &v4));
}
