/* unit/net/test_body.c - bodies end where they say, in pieces of every size. */
#include "net/gateway/body.h"

#include "harness/test.h"

/* Feeds text in steps; returns the payload's length, -1 on error, and how much was left over. */
static long feed(struct body *b, const char *text, size_t step, char *ret, size_t *ret_left)
{
	size_t len = strlen(text), at = 0, n = 0;

	while (at < len && !b->is_done) {
		size_t used, piece;
		const char *payload;
		size_t room = len - at < step ? len - at : step;
		if (body_take(b, text + at, room, &used, &payload, &piece) < 0)
			return -1;
		memcpy(ret + n, payload, piece);
		n += piece;
		at += used;
		if (used == 0)
			break;
	}
	ret[n] = '\0';
	*ret_left = len - at;
	return (long)n;
}

TEST(chunks)
{
	const char *text = "4\r\nWiki\r\nA;ext=1\r\n0123456789\r\n0\r\nX: y\r\n\r\nNEXT";

	for (size_t step = 1; step < 60; step++) {
		struct http_head h = { .framing = HTTP_CHUNKED };
		struct body b;
		char out[64];
		size_t left;
		body_init(&b, &h);
		ASSERT_EQ(feed(&b, text, step, out, &left), 14);
		ASSERT_STREQ(out, "Wiki0123456789");
		ASSERT(b.is_done);
		ASSERT_EQ(left, 4);
	}
}

TEST(broken_chunks)
{
	static const char *const bad[] = {
		"\r\n",
		"x\r\n",
		"4\nWiki\r\n",
		"4 \r\nWiki\r\n",
		"4\r\nWikix",
		"4\r\nWiki\n",
		"-1\r\n",
		"0x4\r\nWiki",
		"+4\r\nWiki",
		"0\r\n\n",
		"0\n\r\n",
		"0\r\nX\x01\r\n",
		"4;a\x01\r\nWiki",
		"1000000000000000\r\n",
		"4\r\rWiki",
		"0\r\nX: y\n\r\n",
		" 4\r\nWiki",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct http_head h = { .framing = HTTP_CHUNKED };
		struct body b;
		char out[64];
		size_t left;
		body_init(&b, &h);
		if (feed(&b, bad[i], 64, out, &left) >= 0)
			test_fail(__FILE__, __LINE__, "taken: %s", bad[i]);
	}
}

TEST(lengths)
{
	struct http_head h = { .framing = HTTP_LENGTH, .length = 5 };
	struct body b;
	char out[64];
	size_t left;

	body_init(&b, &h);
	ASSERT_EQ(feed(&b, "hel", 3, out, &left), 3);
	ASSERT(!b.is_done);
	ASSERT_EQ(feed(&b, "loNEXT", 6, out, &left), 2);
	ASSERT(b.is_done);
	ASSERT_EQ(left, 4);
	h.framing = HTTP_NO_BODY;
	body_init(&b, &h);
	ASSERT(b.is_done);
	h.framing = HTTP_TO_CLOSE;
	body_init(&b, &h);
	ASSERT_EQ(feed(&b, "anything", 3, out, &left), 8);
	ASSERT(!b.is_done);
}
