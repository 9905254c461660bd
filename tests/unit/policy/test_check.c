/* unit/policy/test_check.c - mounts, network rules, secrets, and contradictions between fields. */
#include "harness/test.h"
#include "policy/pattern.h"
#include "policy/policy.h"

static struct policy p;
static struct cordon_error *error;

static const char *apply(const char *text)
{
	cleanup_json json_t *j = NULL;

	policy_done(&p);
	error = cordon_error_free(error);
	ASSERT(policy_init_level(&p, LEVEL_STANDARD, NULL) == 0);
	if (json_parse(text, strlen(text), 0, &j, &error) < 0 ||
	    policy_apply_json(&p, j, &error) < 0)
		return cordon_error_message(error);
	return policy_check(&p, &error) < 0 ? cordon_error_message(error) : "";
}

static void finish(void)
{
	policy_done(&p);
	error = cordon_error_free(error);
}

static void refuses(const char *text, const char *part)
{
	const char *message = apply(text);

	if (!strstr(message, part))
		test_fail(__FILE__, __LINE__, "%s gives '%s', want '%s'", text, message, part);
	finish();
}

static void accepts(const char *text)
{
	const char *message = apply(text);

	if (message[0])
		test_fail(__FILE__, __LINE__, "%s gives '%s'", text, message);
}

TEST(mounts)
{
	accepts("{\"mounts\": [{\"host\": \"/data//x/./\", \"guest\": \"/data/\", \"mode\": "
		"\"ro\"}, "
		"\"/a:/b\", {\"guest\": \"/c\", \"bytes_base64\": \"AAEC\"}]}");
	ASSERT_STREQ(p.mounts[0].host, "/data/x");
	ASSERT_STREQ(p.mounts[0].guest, "/data");
	ASSERT_EQ(p.mounts[0].mode, MOUNT_LIVE_RO);
	ASSERT_EQ(p.mounts[1].mode, MOUNT_SNAPSHOT);
	ASSERT_EQ(p.mounts[2].bytes_len, 3);
	finish();
	refuses("{\"mounts\": \"/a:/b\"}", "mounts must be a list of mounts");
	refuses("{\"mounts\": [3]}", "mounts[0] must be an object or a text");
	refuses("{\"mounts\": [\"/a\"]}", "mounts[0] must be HOST:GUEST");
	refuses("{\"mounts\": [\"a:/b\"]}", "the host path must be absolute");
	refuses("{\"mounts\": [\"/a:b\"]}", "the guest path must be absolute");
	refuses("{\"mounts\": [\"/a:/b/../c\"]}",
		"the guest path must be absolute and without '..'");
	refuses("{\"mounts\": [\"/a:/b:exec\"]}", "the mode must be snapshot, ro or rw, got: exec");
	refuses("{\"mounts\": [{\"host\": \"/a\", \"guest\": \"/b\", \"made\": \"ro\"}]}",
		"mounts[0]: unknown field 'made'. Did you mean 'mode'?");
	refuses("{\"mounts\": [{\"guest\": \"/b\"}]}",
		"mounts[0] needs guest, and either host or bytes");
	refuses("{\"mounts\": [{\"guest\": \"/b\", \"host\": \"/a\", \"bytes\": \"\"}]}",
		"either host or");
	refuses("{\"mounts\": [{\"guest\": \"/b\", \"bytes\": \"\", \"mode\": \"rw\"}]}",
		"bytes can only have the mode snapshot");
	refuses("{\"mounts\": [{\"guest\": \"/b\", \"bytes_base64\": \"?\"}]}", "not valid base64");
}

TEST(mounts_keep_off_the_wall_and_each_other)
{
	refuses("{\"mounts\": [\"/a:/usr/lib\"]}", "/usr/lib belongs to the wall");
	refuses("{\"mounts\": [\"/a:/proc\"]}", "/proc belongs to the wall");
	refuses("{\"mounts\": [\"/a:/dev/x\"]}", "/dev/x belongs to the wall");
	refuses("{\"mounts\": [\"/a:/etc\"]}", "/etc belongs to the wall");
	refuses("{\"mounts\": [\"/a:/\"]}", "/ would hide the workspace");
	refuses("{\"mounts\": [\"/a:/home/user\"]}", "/home/user would hide the workspace");
	refuses("{\"mounts\": [\"/proc:/p:ro\"]}", "/proc of the host would open the host itself");
	refuses("{\"mounts\": [\"/:/host\"]}", "would open the host itself");
	refuses("{\"mounts\": [\"/a:/d\", \"/b:/d\"]}",
		"mounts[0] and mounts[1] overlap: /d and /d");
	refuses("{\"mounts\": [\"/a:/d/e\", \"/b:/d\"]}", "overlap: /d/e and /d");
	accepts("{\"mounts\": [\"/a:/d\", \"/b:/dd\", \"/usrx:/usrx\", \"/c:/home/user/data\"]}");
	finish();
}

TEST(network_rules)
{
	accepts("{\"network\": {\"allow\": [\"API.Example.org.\", \"*.x.org:8443\", \"*\", "
		"\"10.0.0.0/8\", "
		"\"[fd00::1]:443\", \"fd00::/8\", {\"host\": \"h\", \"port\": 443, \"methods\": "
		"[\"get\", "
		"\"POST\"], \"path\": \"/v1/\"}], \"request_bytes\": 5, \"ask\": true}}");
	ASSERT_STREQ(p.network.allow[0].host, "api.example.org");
	ASSERT_EQ(p.network.allow[0].port, 0);
	ASSERT_EQ(p.network.allow[1].port, 8443);
	ASSERT_STREQ(p.network.allow[1].host, "*.x.org");
	ASSERT_STREQ(p.network.allow[4].host, "fd00::1");
	ASSERT_EQ(p.network.allow[4].port, 443);
	ASSERT_STREQ(p.network.allow[5].host, "fd00::/8");
	ASSERT_EQ(p.network.allow[6].methods.count, 2);
	ASSERT_STREQ(p.network.allow[6].path_prefix, "/v1/");
	ASSERT_EQ(p.network.request_bytes, 5);
	ASSERT(p.network.ask);
	finish();
	refuses("{\"network\": {\"allow\": [{\"port\": 1}]}}", "network.allow[0] needs host");
	refuses("{\"network\": {\"allow\": [{\"host\": \"h\", \"port\": 0}]}}",
		"network.allow[0].port must be a number from 1 to 65535, got: 0");
	refuses("{\"network\": {\"allow\": [{\"host\": \"h:1\", \"port\": 2}]}}",
		"names two ports");
	refuses("{\"network\": {\"allow\": [{\"host\": \"h\", \"methods\": [\"G T\"]}]}}",
		"network.allow[0].methods must be a list of HTTP methods, got: G T");
	refuses("{\"network\": {\"allow\": [{\"host\": \"h\", \"methods\": []}]}}",
		"methods must be a list");
	refuses("{\"network\": {\"allow\": [{\"host\": \"h\", \"path\": \"v1\"}]}}",
		"the path must begin");
	refuses("{\"network\": {\"block\": [3]}}", "network.block[0] must be a host or an object");
	refuses("{\"network\": {\"allow\": \"a.org\"}}", "network.allow must be a list of hosts");
	accepts("{\"network\": {\"allow\": \"*\"}}");
	ASSERT_EQ(p.network.allow_count, 1);
	ASSERT_STREQ(p.network.allow[0].host, "*");
	finish();
}

TEST(host_patterns)
{
	static const char *const bad[] = {
		"",
		"a..b",
		".a",
		"-a.org",
		"a b",
		"https://a.org",
		"a.org/x",
		"a*.org",
		"*.*.x",
		"**",
		"127.1",
		"0x7f.0.0.1",
		"a.org:0",
		"a.org:65536",
		"a.org:x",
		"a.org:",
		"[a.org]",
		"10.0.0.0/33",
		"::1/129",
		"b\xc3\xbc.org",
		"a.org:80:90",
		"1.2.3.4.5",
		"*.",
		"2130706433",
		"10.0.0.1/8",
		"fd00::1/8",
		"*.1.2.3.4",
	};
	static const char *const good[] = {
		"a",          "a-b.c_d.org", "*.org",    "*",   "1.2.3.4", "0.0.0.0/0",
		"10.0.0.0/8", "10.1.2.3/32", "fd00::/8", "::1", "[::1]",   "xn--bcher-kva.org",
	};
	char *host;
	uint16_t port;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (pattern_parse(bad[i], "x", &host, &port, NULL) != -CORDON_INVALID)
			test_fail(__FILE__, __LINE__, "'%s' is accepted", bad[i]);
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		if (pattern_parse(good[i], "x", &host, &port, NULL) < 0)
			test_fail(__FILE__, __LINE__, "'%s' is refused", good[i]);
		free(host);
	}
	ASSERT(pattern_covers("*.example.com", "a.example.com"));
	ASSERT(pattern_covers("*.example.com", "a.b.example.com"));
	ASSERT(!pattern_covers("*.example.com", "example.com"));
	ASSERT(!pattern_covers("*.example.com", "evilexample.com"));
}

TEST(exposed_ports)
{
	accepts("{\"expose\": [8000, \"9000\", \"3000-3010\", 8000]}");
	ASSERT_EQ(p.expose.count, 3);
	ASSERT(policy_exposes(&p, 8000) && policy_exposes(&p, 9000));
	ASSERT(policy_exposes(&p, 3000) && policy_exposes(&p, 3010));
	ASSERT(!policy_exposes(&p, 2999) && !policy_exposes(&p, 3011) && !policy_exposes(&p, 0));
	ASSERT(policy_has_sockets(&p));
	finish();
	refuses("{\"expose\": 8000}", "expose must be a list of ports");
	refuses("{\"expose\": [80]}", "expose[0] must be a port or a range");
	refuses("{\"expose\": [65536]}", "expose[0] must be");
	refuses("{\"expose\": [-8000]}", "expose[0] must be");
	refuses("{\"expose\": [8000.5]}", "expose[0] must be");
	refuses("{\"expose\": [\"*\"]}", "expose[0] must be");
	refuses("{\"expose\": [\"\"]}", "expose[0] must be");
	refuses("{\"expose\": [\"8000 \"]}", "expose[0] must be");
	refuses("{\"expose\": [\"08000\"]}", "expose[0] must be");
	refuses("{\"expose\": [\"8000-\"]}", "expose[0] must be");
	refuses("{\"expose\": [\"8001-8000\"]}", "expose[0] must be");
	refuses("{\"expose\": [\"8000:9000\"]}", "expose[0] must be");
	refuses("{\"expose\": [\"99999999999999999999\"]}", "expose[0] must be");
	/* Where the gateway listens. */
	accepts("{\"expose\": [3128]}");
	finish();
	refuses("{\"expose\": [\"3000-4000\"], \"network\": {\"allow\": [\"h\"]}}",
		"expose has the port 3128, on which the gateway listens");
	refuses("{\"expose\": [8080], \"network\": {\"allow\": [\"h:8080\"]}}",
		"expose has the port 8080");
	accepts("{\"expose\": [8081], \"network\": {\"allow\": [\"h:8080\"]}}");
	finish();
}

#define SECRET(host) "{\"name\": \"K\", \"value\": \"v\", \"host\": \"" host "\"}"

TEST(secrets_are_bound_to_allowed_hosts)
{
	refuses("{\"secrets\": [" SECRET("h.org") "]}",
		"secrets[0]: K is for h.org, which network.allow does not allow");
	refuses("{\"network\": {\"allow\": [\"x.org\"]}, \"secrets\": [" SECRET("h.org") "]}",
		"which network.allow does not allow");
	accepts("{\"network\": {\"allow\": [\"*.h.org\"]}, \"secrets\": [" SECRET("a.h.org") "]}");
	ASSERT_STREQ(p.secrets[0].header, "Authorization");
	accepts("{\"network\": {\"block\": [\"x.org\"]}, \"secrets\": [" SECRET("h.org") "]}");
	refuses("{\"network\": {\"block\": [\"h.org\"]}, \"secrets\": [" SECRET("h.org") "]}",
		"does not allow");
	refuses("{\"network\": {\"allow\": [\"*\"]}, \"secrets\": [" SECRET("*.h.org") "]}",
		"host must be one exact host name");
	refuses("{\"network\": {\"allow\": [\"*\"]}, \"secrets\": [" SECRET("h") ", " SECRET(
			"h") "]}",
		"secrets[1]: the name K is taken already");
	refuses("{\"secrets\": [{\"name\": \"K\", \"host\": \"h\"}]}", "needs either value or env");
	refuses("{\"secrets\": [{\"name\": \"1\", \"host\": \"h\", \"value\": \"x\"}]}",
		"name must be");
	refuses("{\"secrets\": [{\"name\": \"K\", \"host\": \"h\", \"value\": \"x\", \"header\": "
		"\"a b\"}]}",
		"header is not");
	refuses("{\"secrets\": [{\"name\": \"K\", \"host\": \"h\", \"env\": "
		"\"NO_SUCH_VARIABLE\"}]}",
		"the host's environment has no variable 'NO_SUCH_VARIABLE'");
	ASSERT(setenv("CORDON_TEST_SECRET", "from-env", 1) == 0);
	accepts("{\"network\": {\"allow\": [\"h\"]}, \"secrets\": [{\"name\": \"K\", \"host\": "
		"\"h\", "
		"\"env\": \"CORDON_TEST_SECRET\"}]}");
	ASSERT_STREQ(p.secrets[0].value, "from-env");
	finish();
}
