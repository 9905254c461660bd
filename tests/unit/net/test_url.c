/* unit/net/test_url.c - URLs that parsers disagree about: where they lead, and whether that is
 * allowed. */
#include "net/gateway/url.h"

#include "harness/test.h"
#include "net/gateway/rule.h"

struct tricky {
	const char *url, *where;
	int open;
};

static const struct tricky urls[] = {
#include "urls.h"
};

static const struct tricky idna_urls[] = {
#include "idna_urls.h"
};

static struct ruleset *make_rules(void)
{
	struct policy_net_rule allow[] = {
		{ .host = "example.com" },
		{ .host = "*.example.org" },
		{ .host = "example.net", .port = 8443 },
		{ .host = "m\xc3\xbcnchen.de" },
		{ .host = "93.184.216.34" },
		{ .host = "10.1.0.0/16" },
		{ .host = "2606:2800:220:1::/64" },
	};
	struct policy_network net = { .allow = allow, .allow_count = 7 };
	struct ruleset *rs = NULL;
	ASSERT_EQ(ruleset_new(&net, &rs, NULL), 0);
	return rs;
}

static bool is_open(const struct ruleset *rs, const struct url *u)
{
	struct rule_query q = {
		.host = &u->host, .port = u->port, .method = "GET", .path = u->path
	};
	struct rule_verdict v;

	ruleset_decide(rs, &q, &v);
	if (v.allowed && host_is_literal(&u->host))
		ruleset_decide_address(rs, &u->host, &u->host.addr, u->port, &v);
	return v.allowed;
}

static int check(const struct ruleset *rs, const struct tricky *t)
{
	cleanup_url struct url u = { 0 };
	char where[HOST_TEXT_SIZE + 8] = "";
	bool ok = url_parse(t->url, strlen(t->url), &u, NULL) == 0;

	if (ok)
		snprintf(where, sizeof(where), "%s:%u", u.host.name, u.port);
	if (ok == (t->where != NULL) && (!ok || strcmp(where, t->where) == 0) &&
	    (ok && is_open(rs, &u)) == t->open)
		return 0;
	fprintf(stderr, "# '%s': %s %s, want %s %s\n", t->url, ok ? where : "refused",
		ok && is_open(rs, &u) ? "open" : "closed", t->where ? t->where : "refused",
		t->open ? "open" : "closed");
	return 1;
}

TEST(tricky_urls)
{
	struct ruleset *rs = make_rules();
	int bad = 0;

	for (size_t i = 0; i < sizeof(urls) / sizeof(*urls); i++)
		bad += check(rs, &urls[i]);
	ruleset_free(rs);
	ASSERT_EQ(bad, 0);
	ASSERT(sizeof(urls) / sizeof(*urls) >= 300);
}

TEST(tricky_urls_beyond_ascii)
{
	struct ruleset *rs = make_rules();
	int bad = 0;

	for (size_t i = 0; i < sizeof(idna_urls) / sizeof(*idna_urls); i++)
		bad += check(rs, &idna_urls[i]);
	ruleset_free(rs);
	ASSERT_EQ(bad, 0);
}

TEST(paths_are_normalised)
{
	static const struct {
		const char *path, *want;
	} cases[] = {
		{ "", "/" },
		{ "/", "/" },
		{ "/a/b", "/a/b" },
		{ "/a/./b", "/a/b" },
		{ "/a/../b", "/b" },
		{ "/a/b/..", "/a/" },
		{ "/a/b/.", "/a/b/" },
		{ "/..", "/" },
		{ "/../../etc/passwd", "/etc/passwd" },
		{ "/a/%2e%2e/b", "/b" },
		{ "/a/%2E./b", "/b" },
		{ "/a/.%2e/b", "/b" },
		{ "/a\\..\\b", "/b" },
		{ "/a//../b", "/a/b" },
		{ "/a/...", "/a/..." },
		{ "/a?b/../c", "/a?b/../c" },
		{ "?x", "/?x" },
		{ "/a#b", "/a" },
		{ "/a b", "/a%20b" },
		{ "/\xc3\xbc", "/%C3%BC" },
		{ "/a\r\nX: y", "/a%0D%0AX:%20y" },
		{ "/%2f", "/%2f" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cleanup_free char *got = NULL;
		ASSERT_EQ(url_normalise_path(cases[i].path, strlen(cases[i].path), &got, NULL), 0);
		ASSERT_STREQ(got, cases[i].want);
	}
}

TEST(references_are_resolved)
{
	static const struct {
		const char *ref, *want;
	} cases[] = {
		{ "/x", "https://example.com/x" },
		{ "x", "https://example.com/a/x" },
		{ "../x", "https://example.com/x" },
		{ "?q", "https://example.com/a/b?q" },
		{ "#f", "https://example.com/a/b?p" },
		{ "", "https://example.com/a/b?p" },
		{ "//evil.test/x", "https://evil.test/x" },
		{ "\\\\evil.test/x", "https://evil.test/x" },
		{ "/\\evil.test/x", "https://evil.test/x" },
		{ "/\t/evil.test/x", "https://evil.test/x" },
		{ "http://169.254.169.254/", "http://169.254.169.254/" },
		{ "HTTP://EXAMPLE.COM:81", "http://example.com:81/" },
		{ "x:y", NULL },
		{ "javascript:alert(1)", NULL },
	};
	cleanup_url struct url base = { 0 };
	const char *text = "https://example.com/a/b?p";

	ASSERT_EQ(url_parse(text, strlen(text), &base, NULL), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cleanup_url struct url u = { 0 };
		int r = url_resolve(&base, cases[i].ref, strlen(cases[i].ref), &u, NULL);
		ASSERT_EQ(r == 0, cases[i].want != NULL);
		if (r < 0)
			continue;
		cleanup_free char *got = url_text(&u);
		ASSERT_STREQ(got, cases[i].want);
	}
}

TEST(oversize_is_refused)
{
	static char big[URL_MAX_LEN + 2];
	cleanup_url struct url u = { 0 };

	memset(big, 'a', sizeof(big) - 1);
	memcpy(big, "http://x/", 9);
	ASSERT_EQ(url_parse(big, sizeof(big) - 1, &u, NULL), -CORDON_LIMIT);
	ASSERT_EQ(url_parse("http://a\0b/", 11, &u, NULL), -CORDON_INVALID);
}
