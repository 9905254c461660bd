/* unit/serve/test_route.c - paths of HTTP requests: decoding, patterns, methods. */
#include "serve/http/route.h"

#include <string.h>

#include "harness/test.h"

static void expect(const char *text, const char *want)
{
	cleanup_free char *got = route_decode(text, strlen(text));

	if (!want)
		ASSERT(!got);
	else
		ASSERT_STREQ(got, want);
}

TEST(decoding)
{
	expect("", "");
	expect("a%20b", "a b");
	expect("%c3%A4", "\xc3\xa4");
	expect("%2e%2E%2f", "../");
	expect("a+b", "a+b");
	expect("%", NULL);
	expect("%2", NULL);
	expect("%zz", NULL);
	expect("a%00b", NULL);
	expect("%ff", NULL);
}

static void answer(struct httpd_exchange *x, void *arg)
{
	(void)x;
	(void)arg;
}

static const struct httpd_route routes[] = {
	{ .method = "GET", .path = "/a", .fn = answer },
	{ .method = "POST", .path = "/a", .fn = answer },
	{ .method = "GET", .path = "/a/{one}/b/{two}", .fn = answer },
	{ .path = "/files/{rest*}", .fn = answer },
	{ .path = NULL },
};

static unsigned find(const char *method, const char *path, struct route_match *m)
{
	const struct httpd_table tables[] = { { routes, NULL }, { NULL, NULL } };

	route_match_done(m);
	return route_find(tables, method, path, m);
}

TEST(patterns)
{
	struct route_match m = { 0 };

	ASSERT_EQ(find("GET", "/a", &m), 0);
	ASSERT(m.route == &routes[0]);
	ASSERT_EQ(find("HEAD", "/a", &m), 0);
	ASSERT_EQ(find("DELETE", "/a", &m), 405);
	ASSERT_STREQ(m.allow, "GET, POST");
	ASSERT_EQ(find("GET", "/a/", &m), 404);
	ASSERT_EQ(find("GET", "/A", &m), 404);
	ASSERT_EQ(find("GET", "a", &m), 404);
	ASSERT_EQ(find("GET", "", &m), 404);
	ASSERT_EQ(find("GET", "/a/x%2fy/b/z", &m), 0);
	ASSERT_STREQ(route_param(&m, "one"), "x/y");
	ASSERT_STREQ(route_param(&m, "two"), "z");
	ASSERT(!route_param(&m, "on"));
	ASSERT_EQ(find("GET", "/a//b/z", &m), 404);
	ASSERT_EQ(find("GET", "/a/%00/b/z", &m), 400);
	ASSERT_EQ(find("PUT", "/files/x/y", &m), 0);
	ASSERT_STREQ(route_param(&m, "rest"), "x/y");
	ASSERT_EQ(find("PUT", "/files/", &m), 0);
	ASSERT_STREQ(route_param(&m, "rest"), "");
	route_match_done(&m);
}
