/* unit/base/test_json.c - JSON, strict and exact. */
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "harness/test.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>

static json_t *parse(const char *text)
{
	json_t *j = NULL;
	struct cordon_error *e = NULL;

	if (json_parse(text, strlen(text), 0, &j, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", text, cordon_error_message(e));
	return j;
}

static void assert_refused(const char *text, size_t len, const char *reason)
{
	json_t *j = NULL;
	struct cordon_error *e = NULL;

	if (json_parse(text, len, 0, &j, &e) != -CORDON_INVALID || j)
		test_fail(__FILE__, __LINE__, "'%s' was taken", text);
	ASSERT_HAS(cordon_error_message(e), reason);
	cordon_error_free(e);
}

TEST(what_is_not_strict_json_is_refused_with_its_place)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{ "{\"a\":1,\n\"a\":2}", "line 2, column 1: duplicate object key" },
		{ "{\"a\":1,\"\\u0061\":2}", "line 1, column 8: duplicate object key" },
		{ "\"\xff\"", "line 1, column 2: not valid UTF-8" },
		{ "[1] 2", "line 1, column 5: text after the value" },
		{ "", "line 1, column 1: the text ends too early" },
		{ "[1,", "line 1, column 4: the text ends too early" },
		{ "\"a", "line 1, column 3: the text ends too early" },
		{ "[1,]", "line 1, column 4: unexpected ']'" },
		{ "[1 2]", "line 1, column 4: " },
		{ "{a:1}", "line 1, column 2: unexpected 'a'" },
		{ "{\"\xc3\xa9\";1}", "line 1, column 5: unexpected ';'" },
		{ "'a'", "line 1, column 1: unexpected '''" },
		{ "NaN", "line 1, column 1: unexpected 'N'" },
		{ "nul", "line 1, column 1: unexpected 'n'" },
		{ "01", "line 1, column 1: " },
		{ "-", "line 1, column 1: " },
		{ "9223372036854775808", "a number out of range" },
		{ "-9223372036854775809", "a number out of range" },
		{ "1e999", "a number out of range" },
		{ "\"\\ud800\"", "half a surrogate pair" },
		{ "\"\\x\"", "bad escape in a string" },
		{ "{\"a\\u0000b\":1}", "NUL in a key" },
		{ "\"tab\tinside\"", "line 1, column 5: control character in a string" },
		{ "\xef\xbb\xbf{}", "line 1, column 1: " },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_refused(cases[i].text, strlen(cases[i].text), cases[i].reason);
	assert_refused("[1]\0", 4, "line 1");
}

TEST(depth_is_refused_before_anything_recurses)
{
	enum { MANY = 5000000 };
	char *text = malloc(MANY);
	json_t *j = NULL;

	ASSERT(text);
	memset(text, '[', 64);
	memset(text + 64, ']', 64);
	ASSERT_EQ(json_parse(text, 128, 0, &j, NULL), 0);
	json_decref(j);
	memset(text, '[', 65);
	memset(text + 65, ']', 65);
	assert_refused(text, 130, "line 1, column 65: nested deeper than 64 levels");
	memset(text, '[', MANY);
	assert_refused(text, MANY, "nested deeper than 64 levels");
	free(text);
	/* Brackets inside strings are no levels. */
	char *quoted = str_printf("\"\\\"%s%s\"", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
				  "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[");
	json_decref(parse(quoted));
	free(quoted);
}

TEST(oversize_is_a_limit_not_a_mistake)
{
	json_t *j = NULL;

	ASSERT_EQ(json_parse("[1,2]", 5, 4, &j, NULL), -CORDON_LIMIT);
	ASSERT_EQ(json_parse("[1,2]", 5, 5, &j, NULL), 0);
	json_decref(j);
}

static void assert_text(const char *in, const char *want)
{
	json_t *j = parse(in);
	size_t len = 0;
	char *text = json_text(j, &len);

	ASSERT_STREQ(text, want);
	ASSERT_EQ(len, strlen(want));
	free(text);
	json_decref(j);
}

TEST(text_is_compact_exact_and_in_order)
{
	assert_text("{\"z\" : 1, \"a\" : [ true , false,null ], \"m\":{}}",
		    "{\"z\":1,\"a\":[true,false,null],\"m\":{}}");
	assert_text("-9223372036854775808", "-9223372036854775808");
	assert_text("9223372036854775807", "9223372036854775807");
	assert_text("\"\\u0000\\u001f\\b\\f\\n\\r\\t\\u000b\\\"\\\\\\/\\u00e9\"",
		    "\"\\u0000\\u001f\\b\\f\\n\\r\\t\\u000b\\\"\\\\/\xc3\xa9\"");
	assert_text("[[],{}]", "[[],{}]");
}

TEST(a_double_stays_a_double)
{
	assert_text("2.0", "2.0");
	assert_text("-0.0", "-0.0");
	assert_text("0.0", "0.0");
	assert_text("1e300", "1e+300");
	assert_text("1e14", "100000000000000.0");
	assert_text("1e15", "1e+15");
	assert_text("123456789012345678.0", "1.2345678901234568e+17");
	assert_text("0.1", "0.1");
	assert_text("0.30000000000000004", "0.30000000000000004");
}

static uint64_t bits_of(double d)
{
	uint64_t bits;
	memcpy(&bits, &d, sizeof(bits));
	return bits;
}

static void assert_exact(double d)
{
	json_t *j = json_real(d), *back = NULL;
	size_t len;
	char *text = json_text(j, &len);

	ASSERT_EQ(json_parse(text, len, 0, &back, NULL), 0);
	ASSERT(json_is_real(back));
	if (bits_of(json_real_value(back)) != bits_of(d))
		test_fail(__FILE__, __LINE__, "%a became %s", d, text);
	free(text);
	json_decref(j);
	json_decref(back);
}

TEST(every_double_comes_back_bit_for_bit)
{
	static const double edges[] = { 0.0,
					-0.0,
					1.0 / 3,
					5e-324,
					DBL_MIN,
					DBL_MAX,
					-DBL_MAX,
					1e15,
					1e17,
					123456789.123456789,
					9007199254740993.0,
					DBL_EPSILON };
	uint64_t seed = 88172645463325252ULL;

	for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++)
		assert_exact(edges[i]);
	for (int i = 0; i < 20000; i++) {
		double d;
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		memcpy(&d, &seed, sizeof(d));
		if (isfinite(d))
			assert_exact(d);
	}
}

TEST(the_host_programs_locale_does_not_matter)
{
	/* Needs no German installed: what is not plain in a number becomes the point. Where a
	 * locale with a comma is there, it is the real thing. */
	static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (setlocale(LC_ALL, names[i]))
			break;
	assert_text("[1.5,1e300,-2.5e-10]", "[1.5,1e+300,-2.5e-10]");
	assert_exact(1.0 / 3);
}

TEST(pretty_text_is_the_same_value)
{
	json_t *j = parse("{\"a\":[1,{\"b\":null}],\"c\":{},\"d\":[]}");
	char *text = json_text_pretty(j);

	ASSERT_STREQ(text, "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n"
			   "  \"c\": {},\n  \"d\": []\n}");
	free(text);
	json_decref(j);
}

TEST(a_value_too_deep_to_write_is_refused)
{
	json_t *j = json_array();

	for (int i = 0; i < 2000; i++) {
		json_t *outer = json_array();
		json_array_append_new(outer, j);
		j = outer;
	}
	ASSERT(!json_text(j, NULL));
	ASSERT(!json_text(NULL, NULL));
	json_decref(j);
}

TEST(getters_say_where_the_wrong_type_is)
{
	json_t *j = parse("{\"s\":\"x\",\"n\":7,\"neg\":-1,\"f\":1.5,\"b\":true,\"o\":{},\"a\":[],"
			  "\"nul\":\"a\\u0000b\"}");
	struct cordon_error *e = NULL;
	const char *s = "default";
	uint64_t n = 3;
	bool b = false;
	json_t *o = NULL, *a = NULL;

	ASSERT_EQ(json_get_string(j, "", "missing", &s, &e), 0);
	ASSERT_STREQ(s, "default");
	ASSERT_EQ(json_get_string(j, "", "s", &s, &e), 0);
	ASSERT_STREQ(s, "x");
	ASSERT_EQ(json_get_uint(j, "", "n", &n, &e), 0);
	ASSERT_EQ(n, 7);
	ASSERT_EQ(json_get_bool(j, "", "b", &b, &e), 0);
	ASSERT(b);
	ASSERT_EQ(json_get_object(j, "", "o", &o, &e), 0);
	ASSERT_EQ(json_get_array(j, "", "a", &a, &e), 0);
	ASSERT(o && a && !e);
	ASSERT_EQ(json_get_uint(j, "/limits", "neg", &n, &e), -CORDON_INVALID);
	ASSERT_STREQ(cordon_error_message(e),
		     "/limits/neg must be an integer that is not negative");
	e = cordon_error_free(e);
	ASSERT_EQ(json_get_uint(j, "", "f", &n, NULL), -CORDON_INVALID);
	ASSERT_EQ(json_get_uint(j, "", "s", &n, NULL), -CORDON_INVALID);
	ASSERT_EQ(json_get_bool(j, "", "n", &b, NULL), -CORDON_INVALID);
	ASSERT_EQ(json_get_object(j, "", "a", &o, NULL), -CORDON_INVALID);
	ASSERT_EQ(json_get_array(j, "", "o", &a, NULL), -CORDON_INVALID);
	ASSERT_EQ(json_get_string(j, "", "nul", &s, &e), -CORDON_INVALID);
	ASSERT_HAS(cordon_error_message(e), "NUL");
	cordon_error_free(e);
	ASSERT_EQ(n, 7);
	json_decref(j);
}

TEST(unknown_keys_get_the_nearest_name)
{
	static const char *const names[] = { "timeout_ms", "network" };
	json_t *j = parse("{\"network\":1,\"timeut_ms\":2}");
	struct cordon_error *e = NULL;

	ASSERT_EQ(json_check_keys(j, "", names, 2, &e), -CORDON_INVALID);
	ASSERT_STREQ(cordon_error_message(e), "/timeut_ms is unknown; did you mean 'timeout_ms'?");
	cordon_error_free(e);
	json_object_del(j, "timeut_ms");
	ASSERT_EQ(json_check_keys(j, "", names, 2, NULL), 0);
	json_decref(j);
}

TEST(lossy_strings_replace_only_what_is_broken)
{
	static const struct {
		const char *in;
		size_t len;
		const char *out;
	} cases[] = {
		{ "plain", 5, "plain" },
		{ "a\xff"
		  "b",
		  3,
		  "a\xef\xbf\xbd"
		  "b" },
		{ "\xe2\x82", 2, "\xef\xbf\xbd" },
		{ "\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xe2\x82\xac", 3, "\xe2\x82\xac" },
		{ "", 0, "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		json_t *j = json_string_lossy(cases[i].in, cases[i].len);
		ASSERT_STREQ(json_string_value(j), cases[i].out);
		ASSERT(str_is_utf8(json_string_value(j), json_string_length(j)));
		json_decref(j);
	}
	json_t *nul = json_string_lossy("a\0b", 3);
	ASSERT_EQ(json_string_length(nul), 3);
	json_decref(nul);
}

/* The text of a string with these bytes, read again. */
static json_t *there_and_back(const char *bytes, size_t len)
{
	cleanup_buf struct buf b = { 0 };
	json_t *back = NULL;

	buf_init(&b, 1 << 20);
	ASSERT_EQ(buf_add_char(&b, '"'), 0);
	ASSERT_EQ(json_add_text(&b, bytes, len), 0);
	ASSERT_EQ(buf_add_char(&b, '"'), 0);
	ASSERT_EQ(json_parse(b.data, b.len, 0, &back, NULL), 0);
	return back;
}

TEST(any_byte_at_any_place_of_a_text_comes_back)
{
	char text[24];

	for (unsigned c = 0; c < 256; c++)
		for (size_t at = 0; at < sizeof(text); at++) {
			memset(text, 'a', sizeof(text));
			text[at] = (char)c;
			cleanup_json json_t *back = there_and_back(text, sizeof(text));
			cleanup_json json_t *want = json_string_lossy(text, sizeof(text));
			ASSERT(json_equal(back, want));
		}
}

TEST(a_text_beyond_ascii_stays_as_it_is)
{
	static const char text[] = "\xc3\xa9\xe6\xbc\xa2 \xff\xf0\x9f\x98\x80\n\xe6\xbc";
	cleanup_json json_t *back = there_and_back(text, sizeof(text) - 1);

	ASSERT_STREQ(json_string_value(back), "\xc3\xa9\xe6\xbc\xa2 \xef\xbf\xbd\xf0\x9f\x98\x80\n"
					      "\xef\xbf\xbd");
}
