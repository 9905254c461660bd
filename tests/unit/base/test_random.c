/* unit/base/test_random.c - randomness and hex. */
#include "base/random.h"
#include "harness/test.h"

TEST(bytes_differ_and_cover_all_of_it)
{
	unsigned char a[1000] = { 0 }, b[1000] = { 0 };
	int zeros = 0;

	random_bytes(a, sizeof(a));
	random_bytes(b, sizeof(b));
	ASSERT(memcmp(a, b, sizeof(a)) != 0);
	for (size_t i = 0; i < sizeof(a); i++)
		zeros += a[i] == 0;
	ASSERT(zeros < 60); /* 1000 bytes, four expected */
}

TEST(hex_has_its_length_and_alphabet)
{
	char text[65];

	random_hex(text, 64);
	ASSERT_EQ(strlen(text), 64);
	ASSERT_EQ(strspn(text, "0123456789abcdef"), 64);
	hex_encode(text, "\x00\xff\x1a", 3);
	ASSERT_STREQ(text, "00ff1a");
}

TEST(equal_means_equal)
{
	ASSERT_EQ(random_equal("abc", "abc", 3), 1);
	ASSERT_EQ(random_equal("abc", "abd", 3), 0);
	ASSERT_EQ(random_equal("xbc", "abc", 3), 0);
	ASSERT_EQ(random_equal("", "", 0), 1);
}
