/* unit/tools/test_regexp.c - patterns of schemas. */
#include <string.h>

#include "harness/test.h"
#include "tools/regexp.h"

static void expect(const char *pattern, const char *text, bool want)
{
	const char *why = NULL;
	struct regexp *r = regexp_new(pattern, strlen(pattern), &why);

	if (!r)
		test_fail(__FILE__, __LINE__, "%s: %s", pattern, why);
	if (regexp_is_in(r, text, strlen(text)) != want)
		test_fail(__FILE__, __LINE__, "%s in '%s' is not %d", pattern, text, want);
	regexp_free(r);
}

TEST(matching)
{
	static const struct {
		const char *pattern, *yes, *no; /* NULL: none */
	} cases[] = {
		{ "", "", NULL },
		{ "a", "xay", "xy" },
		{ "^a$", "a", "aa" },
		{ "^$", "", "a" },
		{ "a|b|", "", NULL },
		{ "^(a|bc)+d$", "abcad", "abd" },
		{ "^(?:ab)*$", "abab", "aba" },
		{ "^a?b$", "b", "aab" },
		{ "^a{2}$", "aa", "a" },
		{ "^a{2,3}$", "aaa", "aaaa" },
		{ "^a{2,}$", "aaaaa", "a" },
		{ "^a{0,1}b", "b", "a" },
		{ "^[a-c]+$", "abc", "abd" },
		{ "^[^a-c]+$", "xyz", "xaz" },
		{ "^[]a]$", NULL, "]" },
		{ "^[\\]a-]+$", "]a-", "b" },
		{ "^[\\d_]+$", "1_2", "a" },
		{ "^\\d+\\.\\d+$", "1.25", "1x25" },
		{ "^\\w+@\\w+$", "a_1@b", "a b@c" },
		{ "^\\D\\W\\S$", "a-b", "1-b" },
		{ "\\bcat\\b", "a cat!", "concat" },
		{ "\\Bcat", "concat", "a cat" },
		{ "^.$", "\xc3\xa9", "\n" },
		{ "^\xc3\xa9{2}$", "\xc3\xa9\xc3\xa9", "\xc3\xa9" },
		{ "^[\xce\xb1-\xcf\x89]+$", "\xce\xb2\xce\xb3", "b" },
		{ "^\\u00e9\\x41$",
		  "\xc3\xa9"
		  "A",
		  "eA" },
		{ "^(a*)*$", "aaa", "b" },
		{ "^(a*)+b$", "b", "a" },
		{ "^(|a)+$", "aa", "b" },
		{ "a*?b", "ab", "a" },
		{ "^\\/\\$\\{x\\}$", "/${x}", "x" },
		{ "a}", "a}", "a" },
		{ "^(((a)))$", "a", "" },
		{ "[\\s]", "a b", "ab" },
		{ "\\0", NULL, "a" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (cases[i].yes)
			expect(cases[i].pattern, cases[i].yes, true);
		if (cases[i].no)
			expect(cases[i].pattern, cases[i].no, false);
	}
}

TEST(refusals)
{
	static const char *const bad[] = {
		"(",       ")",     "a)",     "[a",       "[b-a]",  "*a",
		"a**",     "a{2",   "a{2,1}", "a{1001}",  "a{x}",   "(?=a)",
		"(?<n>a)", "(?!a)", "(a)\\1", "\\",       "\\p{L}", "\\xg0",
		"\\u12",   "[\\D]", "\\q",    "a{1000}b", "\xff",   "(a{50}){50}",
	};
	char deep[200], wide[1100];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const char *why = NULL;
		struct regexp *r = regexp_new(bad[i], strlen(bad[i]), &why);
		if (r || !why)
			test_fail(__FILE__, __LINE__, "%s was taken", bad[i]);
	}
	const char *why = NULL;
	memset(deep, '(', 50);
	memset(deep + 50, ')', 50);
	ASSERT(!regexp_new(deep, 100, &why));
	ASSERT_STREQ(why, "its groups nest too deeply");
	memset(wide, 'a', sizeof(wide));
	ASSERT(!regexp_new(wide, sizeof(wide), &why));
	ASSERT(!regexp_new("a\0b", 3, &why));
}

/* What takes a backtracking matcher for ever. */
TEST(no_text_makes_it_slow)
{
	static char text[200001];

	memset(text, 'a', sizeof(text) - 1);
	expect("^(a+)+$", text, true);
	expect("^(a|a)*b$", text, false);
	expect("(a*)*b", text, false);
	expect("^(a?){20}a{20}c", text, false);
}
