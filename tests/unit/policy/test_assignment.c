/* unit/policy/test_assignment.c - key=value, units, and mounts as text. */
#include "harness/test.h"
#include "policy/policy.h"

static struct policy p;

static void set(const char *assignment)
{
	cleanup_error struct cordon_error *e = NULL;

	if (!p.level)
		ASSERT(policy_init_level(&p, LEVEL_STANDARD, NULL) == 0);
	if (policy_apply_set(&p, assignment, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", assignment, cordon_error_message(e));
}

static void refuses(const char *assignment, const char *part)
{
	cleanup_error struct cordon_error *e = NULL;

	if (!p.level)
		ASSERT(policy_init_level(&p, LEVEL_STANDARD, NULL) == 0);
	ASSERT_EQ(policy_apply_set(&p, assignment, &e), -CORDON_INVALID);
	if (!strstr(cordon_error_message(e), part))
		test_fail(__FILE__, __LINE__, "%s gives '%s'", assignment, cordon_error_message(e));
}

TEST(numbers_with_units)
{
	set("timeout_ms=5s");
	ASSERT_EQ(p.timeout_ms, 5000);
	set("timeout_ms=1.5s");
	ASSERT_EQ(p.timeout_ms, 1500);
	set("timeout_ms=250");
	ASSERT_EQ(p.timeout_ms, 250);
	set("timeout_ms=none");
	ASSERT(p.timeout_ms == POLICY_UNLIMITED);
	set("memory_bytes=256M");
	ASSERT_EQ(p.memory_bytes, 256 << 20);
	set("cpu_seconds=2m");
	ASSERT_EQ(p.cpu_seconds, 120);
	set("cpu_seconds=5");
	ASSERT_EQ(p.cpu_seconds, 5);
	set("processes=7");
	ASSERT_EQ(p.processes, 7);
	set("grace_ms=0");
	ASSERT_EQ(p.grace_ms, 0);
	set("grace_ms=2s");
	ASSERT_EQ(p.grace_ms, 2000);
	set("network.timeout_ms=1m");
	ASSERT_EQ(p.network.timeout_ms, 60000);
	set("limits.cpu=9");
	ASSERT_EQ(p.cpu_seconds, 9);
	refuses("timeout_ms=-1", "timeout_ms must be a single positive number, got: -1");
	refuses("timeout_ms=0", "timeout_ms must be a single positive number, got: 0");
	refuses("grace_ms=none", "grace_ms cannot be unlimited");
	refuses("grace_ms=-1", "grace_ms must be a single positive number");
	refuses("timeout_ms=ten", "timeout_ms must be a single positive number, got: ten");
	refuses("timeout_ms=", "timeout_ms must be a single positive number, got: ");
	refuses("processes=7k", "processes must be a single positive number, got: 7k");
	refuses("memory_bytes=none", "memory_bytes cannot be unlimited");
	refuses("limits.cpu=-1", "Limit 'cpu' must be a single positive number, got: -1");
	refuses("limits.bogus=1", "Unknown limit name(s): bogus.");
	policy_done(&p);
}

TEST(lists_words_and_objects)
{
	set("modules=math,json");
	ASSERT_EQ(p.modules.names.count, 2);
	set("modules=*");
	ASSERT(p.modules.all);
	set("modules=strict");
	ASSERT_EQ(p.modules.names.count, 3);
	set("modules=");
	ASSERT(!p.modules.all && p.modules.names.count == 0);
	set("network.allow=api.example.org,*.x.org:8443");
	ASSERT_EQ(p.network.allow_count, 2);
	set("mounts=/a:/b:ro,/c:/d");
	ASSERT_EQ(p.mount_count, 2);
	set("mounts=[{\"guest\": \"/x\", \"bytes\": \"hi, there\"}]");
	ASSERT_EQ(p.mount_count, 1);
	set("env_set.A=1,2=3");
	set("env_set.B=2");
	ASSERT_STREQ(p.env_set.items[0], "A=1,2=3");
	ASSERT_STREQ(p.env_set.items[1], "B=2");
	set("env_set.A=4");
	ASSERT_EQ(p.env_set.count, 2);
	set("validate=off");
	ASSERT(!p.validate);
	set("require=user,seccomp");
	ASSERT_EQ(p.require, LAYER_USERNS | LAYER_SECCOMP);
	set("python=/usr/bin/python3");
	ASSERT_STREQ(p.python, "/usr/bin/python3");
	refuses("validate=maybe", "validate must be true or false, got: maybe");
	refuses("modules=a,,b", "modules[1] must be the name of a Python module, got: ");
	refuses("mounts=[", "mounts is not valid JSON");
	refuses("env_set.1x=a", "env_set: '1x' is not");
	policy_done(&p);
}

TEST(what_is_no_assignment)
{
	refuses("timeout_ms", "is not an assignment: write KEY=VALUE");
	refuses("=5", "is not an assignment");
	refuses("", "is not an assignment");
	refuses("timeout=5", "Did you mean 'timeout_ms'?");
	refuses("network.alow=x", "Did you mean 'network.allow'?");
	refuses("network=x", "Unknown policy field 'network'");
	refuses("level=strict", "choose it with --level");
	refuses("python=/\xff", "valid UTF-8");
	policy_done(&p);
}

TEST(durations)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = { { "1", 1 },       { "250ms", 250 },   { "5s", 5000 },
		     { "2m", 120000 }, { "2min", 120000 }, { "1h", 3600000 },
		     { "0.25s", 250 }, { "1d", 86400000 }, { "0.001s", 1 } };
	static const char *const bad[] = { "",
					   "s",
					   "0",
					   "-1",
					   "+1",
					   " 1",
					   "1 s",
					   "5S",
					   "1.5",
					   "1.",
					   ".5s",
					   "1.0000001s",
					   "0x10",
					   "1e3",
					   "0.0001s",
					   "99999999999999999999",
					   "9223372036854775807h" };
	uint64_t ms = 77;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		ASSERT(policy_parse_duration(good[i].text, &ms, NULL) == 0);
		ASSERT_EQ(ms, good[i].ms);
	}
	ms = 77;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (policy_parse_duration(bad[i], &ms, NULL) != -CORDON_INVALID || ms != 77)
			test_fail(__FILE__, __LINE__, "'%s' is accepted", bad[i]);
}

TEST(sizes)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = { { "1", 1 },
		     { "64k", 65536 },
		     { "64K", 65536 },
		     { "256M", 268435456 },
		     { "256MiB", 268435456 },
		     { "256mb", 268435456 },
		     { "1G", 1073741824 },
		     { "1.5k", 1536 },
		     { "10B", 10 },
		     { "1T", 1099511627776 } };
	static const char *const bad[] = { "",
					   "k",
					   "0",
					   "0M",
					   "-1",
					   "1 M",
					   "1P",
					   "1ib",
					   "1.5",
					   "9999999T",
					   "256MM",
					   "1kibb",
					   "99999999999999999999999999999999999" };
	uint64_t bytes = 77;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		ASSERT(policy_parse_size(good[i].text, &bytes, NULL) == 0);
		ASSERT_EQ(bytes, good[i].bytes);
	}
	bytes = 77;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (policy_parse_size(bad[i], &bytes, NULL) != -CORDON_INVALID || bytes != 77)
			test_fail(__FILE__, __LINE__, "'%s' is accepted", bad[i]);
}

TEST(mounts_as_text)
{
	struct policy_mount m;

	ASSERT(policy_parse_mount("/a:/b:rw", &m, NULL) == 0);
	ASSERT_STREQ(m.host, "/a");
	ASSERT_STREQ(m.guest, "/b");
	ASSERT_EQ(m.mode, MOUNT_LIVE_RW);
	free(m.host);
	free(m.guest);
	ASSERT_EQ(policy_parse_mount("/a", &m, NULL), -CORDON_INVALID);
	ASSERT_EQ(policy_parse_mount("/a:/b:", &m, NULL), -CORDON_INVALID);
	ASSERT_EQ(policy_parse_mount("/a:/b:ro:x", &m, NULL), -CORDON_INVALID);
	ASSERT_EQ(policy_parse_mount("a:/b", &m, NULL), -CORDON_INVALID);
}
