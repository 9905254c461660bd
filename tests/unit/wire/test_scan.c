/* unit/wire/test_scan.c - the strict check of one JSON text. */
#include <jansson.h>

#include "base/json.h"
#include "harness/test.h"
#include "wire/scan.h"

#include "base/jsonscan.h"

static const char *scan_copy(const char *text, size_t len)
{
	char *copy = malloc(len + 1);
	ASSERT(copy);
	memcpy(copy, text, len);
	copy[len] = '\n';
	const char *why = scan_value(copy, len);
	free(copy);
	return why;
}

TEST(valid_texts)
{
	static const char *const texts[] = {
		"null",
		" true ",
		"false",
		"0",
		"-0",
		"-0.0",
		"1e5",
		"1E+5",
		"1.5e-300",
		"9223372036854775807",
		"-9223372036854775808",
		"1.7976931348623157e308",
		"0.0000000001e317",
		"1e-99999999",
		"0e999999999999",
		"\"\"",
		"\"a\\n\\u00e9\\ud83d\\ude00\"",
		"\"\\u0000\"",
		"\"\xc3\xa9\xf0\x9f\x98\x80\"",
		"[]",
		"{}",
		"[1,2,[3]]",
		"{\"a\":{\"a\":1},\"b\":[{\"a\":1},{\"a\":2}]}",
		"\t[ 1 ,\r 2 ] ",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		const char *why = scan_copy(texts[i], strlen(texts[i]));
		if (why)
			test_fail(__FILE__, __LINE__, "'%s': %s", texts[i], why);
		cleanup_json json_t *j = NULL;
		ASSERT_EQ(json_parse(texts[i], strlen(texts[i]), 0, &j, NULL), 0);
	}
}

TEST(invalid_texts)
{
	static const char *const texts[] = {
		"",
		" ",
		"nul",
		"nulll",
		"truex",
		"+1",
		"01",
		"-",
		"1.",
		".5",
		"1e",
		"1e+",
		"0x10",
		"NaN",
		"Infinity",
		"9223372036854775808",
		"-9223372036854775809",
		"123456789012345678901234567890",
		"1e309",
		"-1e309",
		"1.7976931348623159e308",
		"1000000000000000000000000000000e300",
		"\"",
		"\"abc",
		"\"\\x\"",
		"\"\\u12\"",
		"\"\\ud800\"",
		"\"\\udc00\"",
		"\"\\ud800\\u0041\"",
		"\"\x01\"",
		"\"\n\"",
		"\"\xff\"",
		"\"\xc0\x80\"",
		"\"\xed\xa0\x80\"",
		"\"\xf4\x90\x80\x80\"",
		"\"\xc3\"",
		"[",
		"[1",
		"[1,",
		"[1,]",
		"[,1]",
		"[1 2]",
		"{",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"{a:1}",
		"{1:1}",
		"{\"a\":1 \"b\":2}",
		"{\"a\":1,\"a\":2}",
		"{\"a\":1,\"\\u0061\":2}",
		"[{\"x\":1,\"x\":1}]",
		"{\"\\u0000\":1}",
		"1 2",
		"[] x",
		"'a'",
		"// x\n1",
		"\xef\xbb\xbf"
		"1",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!scan_copy(texts[i], strlen(texts[i])))
			test_fail(__FILE__, __LINE__, "'%s' was accepted", texts[i]);
	ASSERT(scan_copy("1\0", 2));
	ASSERT(scan_copy("\"\0\"", 3));
}

TEST(depth_has_a_limit)
{
	char text[2 * 100];
	for (int depth = 60; depth < 70; depth++) {
		memset(text, '[', (size_t)depth);
		memset(text + depth, ']', (size_t)depth);
		const char *why = scan_copy(text, 2 * (size_t)depth);
		ASSERT((why == NULL) == (depth <= JSONSCAN_MAX_DEPTH));
	}
	/* A million open brackets neither recurse nor take long. */
	char *open = malloc(1000000);
	ASSERT(open);
	memset(open, '[', 1000000);
	ASSERT_STREQ(scan_copy(open, 1000000), "nested deeper than 64 levels");
	free(open);
}

TEST(values_are_counted)
{
	size_t count = SCAN_MAX_VALUES - 1; /* the array itself is one */
	char *text = malloc(2 * count + 4);
	ASSERT(text);
	text[0] = '[';
	for (size_t i = 0; i < count; i++) {
		text[1 + 2 * i] = '1';
		text[2 + 2 * i] = ',';
	}
	text[2 * count] = ']';
	ASSERT(!scan_copy(text, 2 * count + 1));
	memcpy(text + 2 * count, ",1]", 3);
	ASSERT_STREQ(scan_copy(text, 2 * count + 3), "more than 1000000 elements");
	free(text);
}

TEST(many_keys_are_told_apart)
{
	char *text = malloc(16 * 100000);
	ASSERT(text);
	size_t len = 0;
	text[len++] = '{';
	for (int i = 0; i < 100000; i++)
		len += (size_t)sprintf(text + len, "\"k%d\":0,", i);
	memcpy(text + len - 1, "}", 1);
	ASSERT(!scan_copy(text, len));
	len += (size_t)sprintf(text + len - 1, ",\"k77\":1}") - 1;
	ASSERT_STREQ(scan_copy(text, len), "duplicate key in an object");
	free(text);
}

TEST(members_are_found)
{
	char text[] = "{\"x\":[1],\"name\" : \"a\\tb\" ,\"inner\":{\"n\":2},\"n\":-5,\"t\":true}";
	struct scan_member m[] = {
		{ .name = "name" }, { .name = "n" }, { .name = "t" }, { .name = "absent" }
	};
	int64_t n = 0;
	bool b = false;

	ASSERT(!scan_object(text, strlen(text), m, 4));
	ASSERT(scan_is_string(m[0].value));
	ASSERT(scan_get_int(m[1].value, &n));
	ASSERT_EQ(n, -5);
	ASSERT(scan_get_bool(m[2].value, &b) && b);
	ASSERT(!m[3].value.data);
	ASSERT(!scan_get_int(m[0].value, &n) && !scan_get_bool(m[1].value, &b));
	struct scan_slice s = scan_take_string(m[0].value);
	ASSERT_STREQ(s.data, "a\tb");
	ASSERT_EQ(s.len, 3);
}

TEST(integers_are_exact)
{
	static const struct {
		const char *text;
		int64_t want;
	} cases[] = { { "9223372036854775807", INT64_MAX },
		      { "-9223372036854775808", INT64_MIN },
		      { "0", 0 },
		      { "-1", -1 } };
	for (size_t i = 0; i < 4; i++) {
		int64_t n = 7;
		char *copy = strdup(cases[i].text);
		ASSERT(scan_get_int((struct scan_slice){ copy, strlen(copy) }, &n));
		ASSERT_EQ(n, cases[i].want);
		free(copy);
	}
	char real[] = "1.0";
	int64_t n;
	ASSERT(!scan_get_int((struct scan_slice){ real, 3 }, &n));
}

TEST(strings_are_decoded)
{
	char text[] = "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\u0000z\"";
	ASSERT(!scan_value(text, strlen(text)));
	struct scan_slice s = scan_take_string((struct scan_slice){ text, strlen(text) });
	ASSERT_STREQ(s.data, "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbdz");
	ASSERT_EQ(s.len, strlen(s.data));
}
