/* unit/net/test_secret.c - secrets go into one header of one host, and never come back. */
#include "net/gateway/secret.h"

#include "base/base64.h"
#include "harness/test.h"

#define VALUE "s3cr3t/\"Value+42"
#define SIGNS "?>~?>~?>~?>~" /* whose base64 has both signs that URLs write otherwise */

static struct secret_list make(void)
{
	struct secret_list l = { 0 };

	ASSERT_EQ(secret_list_add(&l, "TOKEN", VALUE, "a.test", NULL, NULL), 0);
	ASSERT_EQ(secret_list_add(&l, "TOKEN2", "another one", "a.test", "X-Key", NULL), 0);
	ASSERT_EQ(secret_list_add(&l, "SIGNS", SIGNS, "a.test", NULL, NULL), 0);
	ASSERT_EQ(secret_list_add(&l, "B", "that of b.test", "b.test", NULL, NULL), 0);
	return l;
}

static struct host host(const char *name)
{
	struct host h;

	ASSERT_EQ(host_parse(name, strlen(name), &h, NULL), 0);
	return h;
}

static char *fill(const char *to, const char *name, const char *value, bool *ret_used)
{
	struct secret_list l = make();
	struct host h = host(to);
	struct http_field f = { { name, strlen(name) }, { value, strlen(value) } };
	struct buf out;

	buf_init(&out, 1000);
	*ret_used = false;
	ASSERT_EQ(secret_fill(&l, &h, &f, &out, ret_used), 0);
	secret_list_done(&l);
	return buf_take(&out);
}

TEST(filled_only_where_bound)
{
	static const struct {
		const char *host, *name, *value, *want;
		bool used;
	} cases[] = {
		{ "a.test", "Authorization", "Bearer cordon-secret-TOKEN", "Bearer " VALUE, true },
		{ "a.test", "authorization", "cordon-secret-TOKENx", VALUE "x", true },
		{ "a.test", "X-Key", "cordon-secret-TOKEN2", "another one", true },
		{ "a.test", "X-Key", "cordon-secret-TOKEN", "cordon-secret-TOKEN", false },
		{ "a.test", "Cookie", "cordon-secret-TOKEN", "cordon-secret-TOKEN", false },
		{ "a.test", "Authorization", "cordon-secret-B", "cordon-secret-B", false },
		{ "a.test", "Authorization", "cordon-secret-", "cordon-secret-", false },
		{ "x.a.test", "Authorization", "cordon-secret-TOKEN", "cordon-secret-TOKEN",
		  false },
		{ "b.test", "Authorization", "cordon-secret-B cordon-secret-B",
		  "that of b.test that of b.test", true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool used;
		cleanup_free char *got = fill(cases[i].host, cases[i].name, cases[i].value, &used);
		ASSERT_STREQ(got, cases[i].want);
		ASSERT_EQ(used, cases[i].used);
	}
}

/* Through the filter in steps; the same length comes out. */
static char *filter(const char *text, size_t step)
{
	struct secret_list l = make();
	struct host h = host("a.test");
	struct secret_filter *f = NULL;
	struct buf out;
	size_t len = strlen(text);

	buf_init(&out, 4000);
	ASSERT_EQ(secret_filter_new(&l, &h, &f, NULL), 0);
	for (size_t at = 0; at < len; at += step) {
		size_t n = len - at < step ? len - at : step, ready;
		const char *bytes = secret_filter_feed(f, text + at, n, at + n == len, &ready);
		ASSERT(bytes && buf_add(&out, bytes, ready) == 0);
	}
	ASSERT_EQ(out.len, len);
	secret_filter_free(f);
	secret_list_done(&l);
	return buf_take(&out);
}

TEST(taken_out_however_it_is_cut)
{
	for (size_t step = 1; step < 60; step++) {
		cleanup_free char *got = filter("echo: " VALUE ", " VALUE VALUE
						" and another one; not that of b.test",
						step);
		ASSERT(!strstr(got, "s3cr3t") && !strstr(got, "another"));
		ASSERT(strstr(got, "echo: ****") && strstr(got, " and ***"));
		ASSERT(strstr(got, "that of b.test"));
	}
}

TEST(taken_out_however_it_is_written)
{
	cleanup_free char *json = filter("{\"x\": \"s3cr3t\\/\\\"Value+42\"}", 7);
	ASSERT(!strstr(json, "s3cr3t") && strstr(json, "*\"}"));
	cleanup_free char *percent = filter("?q=s3cr3t%2F%22Value%2B42&", 7);
	ASSERT_STREQ(percent, "?q=**********************&");
	for (size_t shift = 0; shift < 3; shift++) {
		char plain[64] = "ab";
		strcpy(plain + shift, VALUE ", and more");
		cleanup_free char *text = base64_encode(plain, strlen(plain), NULL);
		cleanup_free char *got = filter(text, 5);
		ASSERT_EQ(strspn(got + 4, "*") >= 16, 1);
	}
}

TEST(taken_out_in_other_alphabets)
{
	cleanup_free char *percent = filter("?q=s3cr3t%2f%22Value%2b42&", 7);
	ASSERT_STREQ(percent, "?q=**********************&");
	cleanup_free char *json = filter("{\"a\":\"s3cr3t/\\\"Value+42\"}", 5);
	ASSERT_STREQ(json, "{\"a\":\"*****************\"}");
	for (size_t shift = 0; shift < 3; shift++) {
		char plain[64] = "ab";
		strcpy(plain + shift, SIGNS ", and more");
		cleanup_free char *text = base64_encode(plain, strlen(plain), NULL);
		cleanup_free char *standard = filter(text, 5);
		ASSERT(strpbrk(text, "+/") && strspn(standard + 4, "*") >= 10);
		for (char *c = text; *c; c++)
			*c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
		cleanup_free char *of_urls = filter(text, 5);
		ASSERT_EQ(strspn(of_urls + 4, "*"), strspn(standard + 4, "*"));
	}
}

TEST(bad_ones_are_refused_without_showing_them)
{
	static const struct {
		const char *name, *value, *host, *header;
	} bad[] = {
		{ "", "long enough", "a.test", NULL },
		{ "a b", "long enough", "a.test", NULL },
		{ "A", "abc", "a.test", NULL },
		{ "A", "line\nbreak", "a.test", NULL },
		{ "A", "carriage\rreturn", "a.test", NULL },
		{ "A", "long enough", "a b", NULL },
		{ "A", "long enough", "", NULL },
		{ "A", "long enough", "a.test", "Host" },
		{ "A", "long enough", "a.test", "Content-Length" },
		{ "A", "long enough", "a.test", "X: y" },
	};
	struct secret_list l = { 0 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		cleanup_error struct cordon_error *e = NULL;
		ASSERT_EQ(secret_list_add(&l, bad[i].name, bad[i].value, bad[i].host, bad[i].header,
					  &e),
			  -CORDON_INVALID);
		ASSERT(!strstr(cordon_error_message(e), bad[i].value));
	}
	secret_list_done(&l);
}
