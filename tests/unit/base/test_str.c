/* unit/base/test_str.c - strings, UTF-8, nearest words, lists. */
#include "base/str.h"
#include "harness/test.h"

TEST(duplicates_and_prints)
{
	char *a = str_dup("abc"), *b = str_ndup("abcdef", 3), *c = str_printf("%d-%s", 7, "x");

	ASSERT_STREQ(a, "abc");
	ASSERT_STREQ(b, "abc");
	ASSERT_STREQ(c, "7-x");
	ASSERT(!str_dup(NULL) && !str_ndup(NULL, 3));
	free(a);
	free(b);
	free(c);
}

TEST(ndup_stops_at_the_end)
{
	char *s = str_ndup("ab", 100);
	ASSERT_STREQ(s, "ab");
	free(s);
}

TEST(compares)
{
	ASSERT(str_eq("a", "a") && !str_eq("a", "b") && !str_eq(NULL, "a") && str_eq(NULL, NULL));
	ASSERT(str_starts("abc", "ab") && !str_starts("a", "ab") && !str_starts(NULL, "a"));
	ASSERT(str_ends("a.py", ".py") && !str_ends("py", ".py") && !str_ends(NULL, ""));
}

TEST(utf8_is_checked_as_the_standard_says)
{
	static const struct {
		const char *bytes;
		size_t len;
		bool ok;
	} cases[] = {
		{ "", 0, true },
		{ "a\0b", 3, true },
		{ "\xc3\xa9", 2, true },
		{ "\xef\xbf\xbf", 3, true },
		{ "\xf4\x8f\xbf\xbf", 4, true },
		{ "\xf0\x90\x80\x80", 4, true },
		{ "\xc3", 1, false },             /* cut */
		{ "\x80", 1, false },             /* lone continuation */
		{ "\xc0\x80", 2, false },         /* overlong NUL */
		{ "\xe0\x9f\xbf", 3, false },     /* overlong */
		{ "\xf0\x8f\xbf\xbf", 4, false }, /* overlong */
		{ "\xed\xa0\x80", 3, false },     /* surrogate */
		{ "\xf4\x90\x80\x80", 4, false }, /* beyond U+10FFFF */
		{ "\xff", 1, false },
		{ "ok\xe2\x82", 4, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (str_is_utf8(cases[i].bytes, cases[i].len) != cases[i].ok)
			test_fail(__FILE__, __LINE__, "case %zu", i);
}

TEST(a_copy_that_does_not_fit_is_empty)
{
	char small[4] = "xyz";

	ASSERT(str_copy(small, sizeof(small), "abc"));
	ASSERT_STREQ(small, "abc");
	ASSERT(!str_copy(small, sizeof(small), "abcd"));
	ASSERT_STREQ(small, "");
	ASSERT(!str_copy(small, 0, ""));
}

TEST(nearest_offers_typos_only)
{
	static const char *const words[] = { "timeout_ms", "memory_bytes", "processes", "run",
					     "policy" };
	const size_t n = sizeof(words) / sizeof(*words);
	char long_word[200];

	ASSERT_STREQ(str_nearest("timeout", words, n), "timeout_ms");
	ASSERT_STREQ(str_nearest("timout_ms", words, n), "timeout_ms");
	ASSERT_STREQ(str_nearest("rnu", words, n), "run");
	ASSERT_STREQ(str_nearest("polcy", words, n), "policy");
	ASSERT(!str_nearest("zebra", words, n));
	ASSERT(!str_nearest("", words, n));
	ASSERT(!str_nearest("x", words, n));
	ASSERT(!str_nearest("policy", words, 0));
	memset(long_word, 'a', sizeof(long_word) - 1);
	long_word[sizeof(long_word) - 1] = '\0';
	ASSERT(!str_nearest(long_word, words, n));
}

TEST(lists_grow_and_stay_terminated)
{
	struct strlist l = { 0 }, copy = { 0 };

	for (int i = 0; i < 100; i++) {
		char *s = str_printf("item %d", i);
		ASSERT_EQ(strlist_add(&l, s), 0);
		ASSERT_EQ(l.count, i + 1);
		ASSERT(!l.items[l.count]);
		free(s);
	}
	ASSERT(strlist_has(&l, "item 99") && !strlist_has(&l, "item 100"));
	ASSERT_EQ(strlist_copy(&copy, &l), 0);
	strlist_done(&l);
	ASSERT_EQ(l.count, 0);
	ASSERT_EQ(copy.count, 100);
	ASSERT_STREQ(copy.items[50], "item 50");
	ASSERT(!copy.items[100]);
	strlist_done(&copy);
}

TEST(counts)
{
	ASSERT_EQ(str_count("a,b,\0,", 6, ','), 3);
	ASSERT_EQ(str_count(",", 0, ','), 0);
}
