/* unit/base/test_buf.c - a buffer never exceeds its limit. */
#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

#include "harness/test.h"

TEST(grows_up_to_its_limit_and_not_a_byte_more)
{
	struct buf b;

	buf_init(&b, 1000);
	ASSERT_STREQ(buf_text(&b), "");
	for (int i = 0; i < 100; i++)
		ASSERT_EQ(buf_add(&b, "0123456789", 10), 0);
	ASSERT_EQ(b.len, 1000);
	ASSERT_EQ(buf_add_char(&b, 'x'), -CORDON_LIMIT);
	ASSERT_EQ(b.len, 1000);
	ASSERT_EQ(b.data[1000], 0);
	buf_done(&b);
}

TEST(what_does_not_fit_adds_nothing)
{
	struct buf b;

	buf_init(&b, 4);
	ASSERT_EQ(buf_add_str(&b, "ab"), 0);
	ASSERT_EQ(buf_add_str(&b, "cde"), -CORDON_LIMIT);
	ASSERT_EQ(buf_printf(&b, "%d", 1234), -CORDON_LIMIT);
	ASSERT(!buf_reserve(&b, 3));
	ASSERT_STREQ(buf_text(&b), "ab");
	buf_done(&b);
}

TEST(a_zeroed_buffer_takes_nothing)
{
	struct buf b = { 0 };

	ASSERT_EQ(buf_add_char(&b, 'x'), -CORDON_LIMIT);
	ASSERT_EQ(buf_add(&b, NULL, 0), 0);
	buf_done(&b);
}

TEST(consumes_from_the_front)
{
	struct buf b;

	buf_init(&b, 100);
	buf_add_str(&b, "line one\nline two\n");
	buf_consume(&b, 9);
	ASSERT_STREQ(buf_text(&b), "line two\n");
	buf_consume(&b, 1000);
	ASSERT_EQ(b.len, 0);
	ASSERT_STREQ(buf_text(&b), "");
	buf_done(&b);
}

TEST(room_can_be_written_directly)
{
	struct buf b;

	buf_init(&b, 100);
	memcpy(buf_reserve(&b, 5), "hello", 5);
	buf_commit(&b, 5);
	ASSERT_EQ(buf_printf(&b, " %s %d", "world", 7), 0);
	char *text = buf_take(&b);
	ASSERT_STREQ(text, "hello world 7");
	ASSERT_EQ(b.len, 0);
	free(text);
	text = buf_take(&b);
	ASSERT_STREQ(text, "");
	free(text);
	buf_done(&b);
}

TEST(room_that_stays_empty_is_a_text)
{
	struct buf b;
	char *dirty = malloc(64);

	memset(dirty, 'x', 64);
	free(dirty); /* what the room is likely to be made of */
	buf_init(&b, 100);
	ASSERT(buf_reserve(&b, 40));
	ASSERT_STREQ(buf_text(&b), "");
	buf_done(&b);
}

TEST(the_largest_limit_does_not_wrap)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	ASSERT_EQ(buf_add_str(&b, "a"), 0);
	ASSERT_EQ(buf_add(&b, "", SIZE_MAX - 1), -CORDON_LIMIT);
	ASSERT_STREQ(buf_text(&b), "a");
	buf_done(&b);
}

TEST(foreign_text_does_not_steer_a_terminal)
{
	struct buf b;

	buf_init(&b, 1000);
	ASSERT_EQ(buf_add_printable(&b, "a\x1b[31m\n\x7f\xc2\x9b\xff\xc3\xa4"), 0);
	ASSERT_STREQ(buf_text(&b), "a\\x1b[31m\\x0a\\x7f\\xc2\\x9b\\xff\xc3\xa4");
	buf_clear(&b); /* nor turns what follows: U+202E, U+2066, U+061C; U+2020 is a dagger */
	ASSERT_EQ(buf_add_printable(&b, "\xe2\x80\xae\xe2\x81\xa6\xd8\x9c\xe2\x80\xa0"), 0);
	ASSERT_STREQ(buf_text(&b), "\\xe2\\x80\\xae\\xe2\\x81\\xa6\\xd8\\x9c\xe2\x80\xa0");
	buf_done(&b);
}

TEST(a_long_foreign_text_costs_no_more_than_fits)
{
	enum { LEN = 64 << 20 };
	char *text = malloc(LEN + 1);
	struct buf b;

	memset(text, 'x', LEN);
	text[LEN] = '\0';
	buf_init(&b, 65536);
	ASSERT_EQ(buf_add_printable(&b, text), -CORDON_LIMIT);
	ASSERT_EQ(b.len, 65536);
	buf_done(&b);
	free(text);
}
