/* unit/net/test_rule.c - decisions by host, port, method, path and address. */
#include "net/gateway/rule.h"

#include "harness/test.h"

#define RULES(...) ((struct policy_net_rule[]){ __VA_ARGS__ })
#define COUNT(...) (sizeof(RULES(__VA_ARGS__)) / sizeof(struct policy_net_rule))
#define ALLOW(...)                                                                                 \
	(struct policy_network)                                                                    \
	{                                                                                          \
		.allow = RULES(__VA_ARGS__), .allow_count = COUNT(__VA_ARGS__)                     \
	}
#define BLOCK(...)                                                                                 \
	(struct policy_network)                                                                    \
	{                                                                                          \
		.block = RULES(__VA_ARGS__), .block_count = COUNT(__VA_ARGS__)                     \
	}

static struct rule_verdict decide(struct policy_network net, const char *host, uint16_t port,
				  const char *method, const char *path)
{
	cleanup_ruleset struct ruleset *rs = NULL;
	struct host h;
	struct rule_verdict v;

	if (ruleset_new(&net, &rs, NULL) < 0 || host_parse(host, strlen(host), &h, NULL) < 0)
		test_fail(__FILE__, __LINE__, "%s: bad case", host);
	struct rule_query q = { .host = &h, .port = port, .method = method, .path = path };
	ruleset_decide(rs, &q, &v);
	return v;
}

static bool opens(struct policy_network net, const char *host)
{
	return decide(net, host, 443, NULL, NULL).allowed;
}

TEST(nothing_is_the_zero_value)
{
	struct rule_verdict v =
		decide((struct policy_network){ 0 }, "example.org", 443, NULL, NULL);

	ASSERT(!v.allowed);
	ASSERT(strstr(v.reason, "not configured"));
}

TEST(names)
{
	struct policy_network net = ALLOW({ .host = "a.test" });

	ASSERT(opens(net, "a.test"));
	ASSERT(opens(net, "A.TEST."));
	ASSERT(!opens(net, "b.test"));
	ASSERT(!opens(net, "x.a.test"));
	ASSERT(!opens(net, "a.test.evil.org"));
	struct rule_verdict v = decide(net, "b.test", 443, NULL, NULL);
	ASSERT_STREQ(v.reason, "host b.test is not in network.allow");
	ASSERT(strstr(v.remedy, "--allow-host b.test"));
	v = decide(net, "a.test", 443, NULL, NULL);
	ASSERT_STREQ(v.rule, "network.allow[0] a.test");
}

TEST(wildcards_are_sub_domains_only)
{
	struct policy_network net = ALLOW({ .host = "*.example.com" });

	ASSERT(opens(net, "sub.example.com"));
	ASSERT(opens(net, "deep.sub.example.com"));
	ASSERT(!opens(net, "example.com"));
	ASSERT(!opens(net, "evilexample.com"));
	ASSERT(!opens(net, "sub.example.com.evil.org"));
}

TEST(star_opens_names_but_no_literals)
{
	struct policy_network net = ALLOW({ .host = "*" });

	ASSERT(opens(net, "anything.test"));
	ASSERT(!opens(net, "93.184.216.34"));
	ASSERT(!opens(net, "[2606:4700::1]"));
}

TEST(allow_wins)
{
	struct policy_network net = ALLOW({ .host = "a.test" });
	net.block = RULES({ .host = "a.test" });
	net.block_count = 1;
	ASSERT(opens(net, "a.test"));
	ASSERT(!opens(net, "b.test"));
}

TEST(block_only_opens_the_rest)
{
	struct policy_network net = BLOCK({ .host = "bad.test" }, { .host = "*.bad.test" });

	ASSERT(!opens(net, "bad.test"));
	ASSERT(!opens(net, "x.bad.test"));
	ASSERT(opens(net, "good.test"));
	ASSERT(!opens(net, "93.184.216.34"));
	ASSERT(!decide(net, "good.test", 22, NULL, NULL).allowed);
	ASSERT(strstr(decide(net, "bad.test", 80, NULL, NULL).reason, "is in network.block"));
}

TEST(ports)
{
	struct policy_network net = ALLOW({ .host = "a.test", .port = 8443 }, { .host = "b.test" });

	ASSERT(!decide(net, "a.test", 443, NULL, NULL).allowed);
	ASSERT(decide(net, "a.test", 8443, NULL, NULL).allowed);
	ASSERT(decide(net, "a.test", 8443, NULL, NULL).raw);
	ASSERT(decide(net, "b.test", 80, NULL, NULL).allowed);
	ASSERT(!decide(net, "b.test", 80, NULL, NULL).raw);
	ASSERT(!decide(net, "b.test", 8080, NULL, NULL).allowed);
	ASSERT(strstr(decide(net, "b.test", 8080, NULL, NULL).remedy, "--allow-host b.test:8080"));
	ASSERT(decide(net, "a.test", 0, NULL, NULL).allowed); /* a name is looked up */
}

TEST(methods)
{
	char *get[] = { "GET", NULL };
	struct policy_network net =
		ALLOW({ .host = "a.test", .methods = { .items = get, .count = 1 } });

	ASSERT(decide(net, "a.test", 443, NULL, NULL).inspect);
	ASSERT(decide(net, "a.test", 443, "GET", "/").allowed);
	ASSERT(decide(net, "a.test", 443, "HEAD", "/").allowed);
	ASSERT(!decide(net, "a.test", 443, "POST", "/").allowed);
	ASSERT(strstr(decide(net, "a.test", 443, "POST", "/").reason, "method POST"));
}

TEST(paths)
{
	struct policy_network net = ALLOW({ .host = "a.test", .path_prefix = "/v1" });

	ASSERT(decide(net, "a.test", 443, NULL, NULL).inspect);
	ASSERT(decide(net, "a.test", 443, "GET", "/v1").allowed);
	ASSERT(decide(net, "a.test", 443, "GET", "/v1/x").allowed);
	ASSERT(decide(net, "a.test", 443, "GET", "/v1?x=%2f").allowed);
	ASSERT(!decide(net, "a.test", 443, "GET", "/v1x").allowed);
	ASSERT(!decide(net, "a.test", 443, "GET", "/").allowed);
	ASSERT(!decide(net, "a.test", 443, "GET", "/v1/%2e%2e%2fadmin").allowed);
	ASSERT(!decide(net, "a.test", 443, "GET", "/v1/..%5cadmin").allowed);
	ASSERT(!decide(net, "a.test", 443, "GET", "/v1//x").allowed);
	ASSERT(!decide(net, "a.test", 443, "GET", "/v1/..;/admin").allowed);
}

TEST(a_blocked_path_in_doubt_is_blocked)
{
	struct policy_network net = BLOCK({ .host = "a.test", .path_prefix = "/admin" });

	ASSERT(decide(net, "a.test", 443, NULL, NULL).allowed);
	ASSERT(decide(net, "a.test", 443, NULL, NULL).inspect);
	ASSERT(decide(net, "a.test", 443, "GET", "/x").allowed);
	ASSERT(!decide(net, "a.test", 443, "GET", "/admin/x").allowed);
	ASSERT(!decide(net, "a.test", 443, "GET", "/x/..%2fadmin").allowed);
}

TEST(an_unlimited_rule_opens_the_whole_host)
{
	char *get[] = { "GET", NULL };
	struct policy_network net =
		ALLOW({ .host = "a.test", .methods = { .items = get, .count = 1 } },
		      { .host = "*.test" });

	ASSERT(!decide(net, "a.test", 443, NULL, NULL).inspect);
	ASSERT(decide(net, "a.test", 443, "POST", "/").allowed);
}

static bool reaches(struct policy_network net, const char *name, const char *address, uint16_t port)
{
	cleanup_ruleset struct ruleset *rs = NULL;
	struct host h;
	struct address_block b;
	struct rule_verdict v;

	if (ruleset_new(&net, &rs, NULL) < 0 || host_parse(name, strlen(name), &h, NULL) < 0 ||
	    !address_parse_block(address, &b))
		test_fail(__FILE__, __LINE__, "%s: bad case", name);
	ruleset_decide_address(rs, &h, &b.base, port, &v);
	return v.allowed;
}

TEST(addresses_behind_a_name)
{
	struct policy_network net = ALLOW({ .host = "*" });

	ASSERT(reaches(net, "a.test", "93.184.216.34", 443));
	ASSERT(reaches(net, "a.test", "2606:4700::1", 443));
	ASSERT(!reaches(net, "a.test", "127.0.0.1", 443));
	ASSERT(!reaches(net, "a.test", "10.0.0.1", 443));
	ASSERT(!reaches(net, "a.test", "169.254.169.254", 80));
	ASSERT(!reaches(net, "a.test", "::ffff:10.0.0.1", 443));
	ASSERT(!reaches(net, "a.test", "64:ff9b::a00:1", 443));
	ASSERT(!reaches(net, "a.test", "::1", 443));
	ASSERT(!reaches(net, "a.test", "fe80::1", 443));
}

TEST(named_addresses)
{
	struct policy_network net =
		ALLOW({ .host = "*" }, { .host = "10.1.0.0/16" }, { .host = "0.0.0.0/0" },
		      { .host = "127.0.0.1", .port = 8080 });

	ASSERT(reaches(net, "a.test", "10.1.2.3", 443));
	ASSERT(!reaches(net, "a.test", "10.1.2.3", 8443));
	ASSERT(!reaches(net, "a.test", "10.2.0.1", 443)); /* 0.0.0.0/0 names nobody */
	ASSERT(reaches(net, "a.test", "127.0.0.1", 8080));
	ASSERT(!reaches(net, "a.test", "127.0.0.1", 443));
	ASSERT(!reaches(net, "a.test", "127.0.0.2", 8080));
	net = ALLOW({ .host = "169.254.0.0/16" }, { .host = "169.254.170.2" });
	ASSERT(!reaches(net, "a.test", "169.254.169.254", 80));
	ASSERT(reaches(net, "a.test", "169.254.170.2", 80));
	ASSERT(reaches(net, "a.test", "169.254.1.1", 80));
}

TEST(blocked_addresses_behind_open_names)
{
	struct policy_network net = BLOCK({ .host = "93.184.216.0/24" });

	ASSERT(!reaches(net, "a.test", "93.184.216.34", 443));
	ASSERT(reaches(net, "a.test", "93.184.217.34", 443));
	ASSERT(!reaches(net, "a.test", "10.0.0.1", 443));
}

TEST(ask_only_what_is_open)
{
	struct policy_network net = ALLOW({ .host = "a.test" });
	net.ask = true;
	ASSERT(decide(net, "a.test", 443, NULL, NULL).ask);
	ASSERT(!decide(net, "b.test", 443, NULL, NULL).ask);
}

TEST(bad_patterns_are_refused_by_name)
{
	static const char *const bad[] = { "",           "a*.test",    "*.*.test",      "**",
					   "*.",         "10.0.0.1/8", "a..test",       "a test",
					   "a/b",        "*.10.0.0.1", "http://a.test", "a.test:80",
					   "user@a.test" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct policy_network net = ALLOW({ .host = (char *)bad[i] });
		cleanup_error struct cordon_error *e = NULL;
		cleanup_ruleset struct ruleset *rs = NULL;
		if (ruleset_new(&net, &rs, &e) != -CORDON_INVALID)
			test_fail(__FILE__, __LINE__, "'%s' was taken", bad[i]);
		ASSERT(strstr(cordon_error_message(e), "network.allow[0]"));
	}
	struct policy_network net = ALLOW({ .host = "a.test", .path_prefix = "v1" });
	cleanup_ruleset struct ruleset *rs = NULL;
	ASSERT_EQ(ruleset_new(&net, &rs, NULL), -CORDON_INVALID);
}

TEST(open_ports)
{
	struct policy_network net = ALLOW({ .host = "a.test", .port = 8443 }, { .host = "b.test" },
					  { .host = "c.test", .port = 22 });
	cleanup_ruleset struct ruleset *rs = NULL;
	uint16_t ports[8];

	ASSERT_EQ(ruleset_new(&net, &rs, NULL), 0);
	ASSERT_EQ(ruleset_ports(rs, ports, 8), 4);
	ASSERT_EQ(ports[0], 22);
	ASSERT_EQ(ports[3], 8443);
	ASSERT_EQ(ruleset_ports(rs, ports, 2), 2);
}
