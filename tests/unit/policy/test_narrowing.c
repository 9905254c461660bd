/* unit/policy/test_narrowing.c - a session's policy may only narrow that of its key. */
#include <string.h>

#include "harness/test.h"
#include "policy/policy.h"

static void load(const char *text, struct policy *ret)
{
	cleanup_json json_t *j = NULL;

	ASSERT_EQ(policy_init_level(ret, LEVEL_STANDARD, NULL), 0);
	ASSERT_EQ(json_parse(text, strlen(text), 0, &j, NULL), 0);
	ASSERT_EQ(policy_apply_json(ret, j, NULL), 0);
}

/* field NULL: it narrows; otherwise the error names it. */
static void expect(const char *limit, const char *policy, const char *field)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_policy struct policy a, z;

	load(limit, &a);
	load(policy, &z);
	int r = policy_narrows(&a, &z, &e);
	if (!field && r < 0)
		test_fail(__FILE__, __LINE__, "%s under %s: %s", policy, limit,
			  cordon_error_message(e));
	if (field && (r != -CORDON_DENIED || !strstr(cordon_error_message(e), field)))
		test_fail(__FILE__, __LINE__, "%s under %s: %s", policy, limit,
			  e ? cordon_error_message(e) : "allowed");
}

TEST(numbers)
{
	expect("{}", "{}", NULL);
	expect("{}", "{\"level\":\"strict\"}", NULL);
	expect("{\"level\":\"strict\"}", "{}", "timeout_ms");
	expect("{\"timeout_ms\":1000}", "{\"timeout_ms\":1000}", NULL);
	expect("{\"timeout_ms\":1000}", "{\"timeout_ms\":1001}", "timeout_ms");
	expect("{\"timeout_ms\":1000}", "{\"timeout_ms\":null}", "timeout_ms");
	expect("{\"timeout_ms\":null}", "{\"timeout_ms\":1000}", NULL);
	expect("{\"memory_bytes\":33554432}", "{\"memory_bytes\":33554433}", "memory_bytes");
}

TEST(lists)
{
	expect("{\"commands\":[\"git\",\"ls\"]}", "{\"commands\":[\"ls\"]}", NULL);
	expect("{\"commands\":[\"ls\"]}", "{\"commands\":[\"git\"]}", "commands");
	expect("{\"commands\":[\"ls\"]}", "{\"commands\":\"*\"}", "commands");
	expect("{\"commands\":\"*\"}", "{\"commands\":[\"git\"]}", NULL);
	expect("{}", "{\"packages\":{\"pip\":\"*\"}}", "packages.pip");
	expect("{}", "{\"env\":[\"PATH\",\"AWS_SECRET_ACCESS_KEY\"]}", "env");
	expect("{}", "{\"env_set\":{\"A\":\"b\"}}", NULL);
	expect("{}", "{\"expose\":[\"8000\"]}", "expose");
	expect("{\"expose\":[\"8000\"]}", "{\"expose\":[]}", NULL);
}

TEST(what_is_the_hosts)
{
	expect("{}", "{\"mounts\":[\"/etc:/data:ro\"]}", "mounts");
	expect("{\"mounts\":[\"/srv:/data:rw\"]}", "{\"mounts\":[\"/srv:/data:ro\"]}", NULL);
	expect("{\"mounts\":[\"/srv:/data:ro\"]}", "{\"mounts\":[\"/srv:/data:rw\"]}", "mounts");
	expect("{}", "{\"mounts\":[{\"guest\":\"/home/user/a\",\"bytes\":\"x\"}]}", NULL);
	expect("{}", "{\"python\":\"/tmp/python\"}", "python");
	expect("{}", "{\"shell\":\"/tmp/sh\"}", "shell");
	expect("{}", "{\"audit\":\"/tmp/audit\"}", "audit");
	expect("{\"audit\":\"/tmp/audit\"}", "{}", "audit");
	expect("{\"audit_required\":true}", "{}", "audit_required");
	expect("{\"require\":[\"user\",\"seccomp\"]}", "{\"require\":[\"user\"]}", "require");
	expect("{}", "{\"packages\":{\"pip_lock\":\"/etc/shadow\"}}", "packages.pip_lock");
	expect("{}", "{\"packages\":{\"pip_index\":[\"/root\"]}}", "packages.pip_index");
	expect("{}", "{\"workspace_exec\":true}", "workspace_exec");
	expect("{\"workspace_exec\":true}", "{}", NULL);
}

TEST(network)
{
	expect("{}", "{\"network\":{\"allow\":[\"a.org\"]}}", "network");
	expect("{}", "{\"network\":{\"block\":[\"a.org\"]}}", "network");
	expect("{\"network\":{\"allow\":[\"a.org\",\"b.org\"]}}",
	       "{\"network\":{\"allow\":[\"a.org\"]}}", NULL);
	expect("{\"network\":{\"allow\":[\"a.org\"]}}", "{\"network\":{\"block\":[\"b.org\"]}}",
	       "network");
	expect("{\"network\":{\"allow\":[\"a.org\"]}}", "{}", NULL);
	expect("{\"network\":{\"block\":[\"b.org\"]}}", "{\"network\":{\"allow\":[\"a.org\"]}}",
	       "network");
	expect("{\"network\":{\"block\":[\"b.org\"]}}",
	       "{\"network\":{\"allow\":[\"a.org\"],\"block\":[\"b.org\"]}}", NULL);
	expect("{\"network\":{\"block\":[\"b.org\"]}}",
	       "{\"network\":{\"block\":[\"b.org\",\"c.org\"]}}", NULL);
	expect("{\"network\":{\"allow\":[\"a.org\"],\"ask\":true}}",
	       "{\"network\":{\"allow\":[\"a.org\"]}}", "network.ask");
	expect("{\"network\":{\"allow\":[\"a.org\"]}}",
	       "{\"network\":{\"allow\":[\"a.org\"],\"upstream_proxy\":\"http://10.0.0.1:3128\"}}",
	       "network.upstream_proxy");
}

TEST(secrets)
{
	expect("{}", "{\"secrets\":[{\"name\":\"K\",\"value\":\"v\",\"host\":\"a.org\"}]}",
	       "secrets");
	expect("{\"secrets\":[{\"name\":\"K\",\"value\":\"v\",\"host\":\"a.org\"}]}",
	       "{\"secrets\":[{\"name\":\"K\",\"value\":\"w\",\"host\":\"a.org\"}]}", "secrets");
	expect("{\"secrets\":[{\"name\":\"K\",\"value\":\"v\",\"host\":\"a.org\"}]}", "{}", NULL);
}

TEST(inherited)
{
	cleanup_policy struct policy from, p;

	load("{\"audit\":\"/var/log/a\",\"audit_keep\":3,\"python\":\"/usr/bin/python3\"}", &from);
	load("{\"level\":\"strict\"}", &p);
	ASSERT_EQ(policy_inherit(&p, &from, NULL), 0);
	ASSERT_STREQ(p.audit, "/var/log/a");
	ASSERT_STREQ(p.python, "/usr/bin/python3");
	ASSERT_EQ(p.audit_keep, 3);
	ASSERT_EQ(p.level, LEVEL_STRICT);
	ASSERT_EQ(policy_narrows(&from, &p, NULL), 0);
}
