/* unit/policy/test_level.c - the presets, copying and the fingerprint. */
#include "harness/test.h"
#include "policy/field.h"
#include "policy/kind.h"
#include "policy/policy.h"

#define MIB (1024 * 1024)

static struct policy level(enum policy_level l)
{
	struct policy p;

	ASSERT(policy_init_level(&p, l, NULL) == 0);
	return p;
}

TEST(presets_have_the_numbers_of_the_design)
{
	cleanup_policy struct policy a = level(LEVEL_PERMISSIVE), b = level(LEVEL_STANDARD),
				     c = level(LEVEL_STRICT);

	ASSERT_EQ(a.timeout_ms, 60000);
	ASSERT_EQ(b.timeout_ms, 30000);
	ASSERT_EQ(c.timeout_ms, 10000);
	ASSERT_EQ(a.memory_bytes, 1024 * MIB);
	ASSERT_EQ(b.memory_bytes, 512 * MIB);
	ASSERT_EQ(c.memory_bytes, 256 * MIB);
	ASSERT(a.cpu_percent == POLICY_UNLIMITED);
	ASSERT_EQ(b.cpu_percent, 100);
	ASSERT_EQ(c.cpu_percent, 50);
	ASSERT_EQ(c.cpu_seconds, 10);
	ASSERT_EQ(c.processes, 16);
	ASSERT_EQ(c.fs_bytes, 64 * MIB);
	ASSERT_EQ(c.file_count, 4096);
	ASSERT(b.tool_calls == POLICY_UNLIMITED);
	ASSERT_EQ(c.tool_calls, 100);
	ASSERT_EQ(b.command_bytes, 65536);
	ASSERT_EQ(b.rpc_bytes, 8 * MIB);
	ASSERT_EQ(b.value_bytes, 256 * MIB);
}

TEST(standard_has_the_defaults_of_r_sessions)
{
	cleanup_policy struct policy p = level(LEVEL_STANDARD);

	ASSERT_EQ(p.cpu_seconds, 60);
	ASSERT_EQ(p.memory_bytes, 536870912);
	ASSERT_EQ(p.file_bytes, 52428800);
	ASSERT_EQ(p.processes, 50);
	ASSERT_EQ(p.open_files, 256);
}

TEST(nothing_of_the_host_is_given_by_default)
{
	for (int l = LEVEL_PERMISSIVE; l <= LEVEL_STRICT; l++) {
		cleanup_policy struct policy p = level((enum policy_level)l);
		ASSERT_EQ(p.mount_count, 0);
		ASSERT_EQ(p.network.allow_count + p.network.block_count, 0);
		ASSERT_EQ(p.secret_count, 0);
		ASSERT_EQ(p.env_set.count, 0);
		ASSERT(!p.packages.all && p.packages.names.count == 0);
		ASSERT(!p.pip.names.all && p.pip.names.names.count + p.pip.sources.count == 0);
		ASSERT(!p.npm.names.all && p.npm.names.names.count + p.npm.sources.count == 0);
		ASSERT(!p.cran.names.all && p.cran.names.names.count + p.cran.sources.count == 0);
		ASSERT(!p.pip.lock && !p.npm.lock && !p.cran.lock);
		ASSERT(p.modules.all && policy_shells_run_all(&p) && p.tools.all);
		ASSERT_EQ(p.commands.all, l != LEVEL_STRICT);
		ASSERT(!policy_names_program(&p));
		ASSERT_EQ(p.workspace_exec, l == LEVEL_PERMISSIVE);
		ASSERT_EQ(p.pty, l != LEVEL_STRICT);
		ASSERT_STREQ(p.result_name, "result");
		ASSERT(p.validate && !p.audit);
	}
}

TEST(environment_is_an_allowlist_without_forbidden_names)
{
	cleanup_policy struct policy usual = level(LEVEL_STANDARD), strict = level(LEVEL_STRICT);

	ASSERT_EQ(usual.env_pass.count, 20);
	ASSERT_EQ(strict.env_pass.count, 4);
	for (size_t i = 0; i < usual.env_pass.count; i++)
		ASSERT(!policy_env_is_forbidden(usual.env_pass.items[i]));
	ASSERT(policy_env_is_forbidden("LD_PRELOAD"));
	ASSERT(policy_env_is_forbidden("R_LIBS_USER"));
	ASSERT(policy_env_is_forbidden("PYTHONPATH"));
	ASSERT(policy_env_is_forbidden("BASH_ENV"));
	ASSERT(!policy_env_is_forbidden("MY_VAR"));
}

TEST(layers_that_must_be_proven)
{
	cleanup_policy struct policy p = level(LEVEL_STANDARD), strict = level(LEVEL_STRICT);

	ASSERT(p.require & LAYER_USERNS && p.require & LAYER_SECCOMP && p.require & LAYER_LANDLOCK);
	ASSERT(!(p.require & LAYER_CGROUPS) && !(p.require & LAYER_OWN_NETNS));
	ASSERT_EQ(strict.require, p.require | LAYER_OWN_NETNS);
	for (uint32_t bit = 1; bit <= LAYER_OWN_NETNS; bit <<= 1) {
		char assignment[64];

		snprintf(assignment, sizeof(assignment), "require=%s",
			 policy_layer_name((enum policy_layer)bit));
		ASSERT_EQ(policy_apply_set(&p, assignment, NULL), 0);
		ASSERT_EQ(p.require, bit);
	}
	ASSERT_EQ(policy_apply_set(&p, "require=bogus", NULL), -CORDON_INVALID);
}

TEST(every_level_passes_its_own_check)
{
	for (int l = LEVEL_PERMISSIVE; l <= LEVEL_STRICT; l++) {
		cleanup_policy struct policy p = level((enum policy_level)l);
		cleanup_error struct cordon_error *e = NULL;
		if (policy_check(&p, &e) < 0)
			test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
		ASSERT_EQ(policy_level_from_name(policy_level_name(p.level)), l);
	}
	ASSERT_EQ(policy_level_from_name("none"), LEVEL_NONE);
	ASSERT_EQ(policy_level_from_name("lax"), LEVEL_NONE);
}

TEST(there_is_no_level_but_the_three)
{
	struct policy p;

	ASSERT_EQ(policy_init_level(&p, LEVEL_NONE, NULL), -CORDON_INVALID);
	ASSERT_EQ(policy_init_level(&p, (enum policy_level)9, NULL), -CORDON_INVALID);
}

TEST(a_zeroed_policy_permits_nothing_and_is_refused)
{
	struct policy p = { 0 };

	ASSERT_EQ(policy_check(&p, NULL), -CORDON_INVALID);
	ASSERT(!p.modules.all && !p.commands.all && !p.tools.all && !p.network.allow);
	ASSERT(!policy_shells_run_all(&p) && !policy_shells_run(&p, "ls"));
	ASSERT(!policy_names_program(&p) && !p.workspace_exec);
	policy_done(&p);
}

static const char full[] =
	"{\"mounts\": [\"/data:/data:ro\", {\"guest\": \"/x\", \"bytes\": \"a\\u0000b\"}],"
	" \"network\": {\"allow\": [{\"host\": \"h.org\", \"port\": 443, \"methods\": [\"get\"],"
	" \"path\": \"/v1/\"}], \"block\": [\"*.evil.org\"], \"ask\": true},"
	" \"secrets\": [{\"name\": \"KEY\", \"value\": \"s3cret\", \"host\": \"h.org\"}],"
	" \"env_set\": {\"A\": \"1\"}, \"modules\": [\"math\"], \"python\": \"/opt/python\"}";

static struct policy rich(void)
{
	struct policy p = level(LEVEL_STANDARD);
	cleanup_json json_t *j = NULL;
	cleanup_error struct cordon_error *e = NULL;

	ASSERT(json_parse(full, strlen(full), 0, &j, NULL) == 0);
	if (policy_apply_json(&p, j, &e) < 0 || policy_check(&p, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	return p;
}

TEST(a_copy_is_equal_and_independent)
{
	cleanup_policy struct policy a = rich(), b = { 0 };
	uint8_t ha[32], hb[32];

	ASSERT(policy_copy(&b, &a, NULL) == 0);
	ASSERT(policy_hash(&a, ha) == 0 && policy_hash(&b, hb) == 0);
	ASSERT(memcmp(ha, hb, 32) == 0);
	ASSERT(a.mounts != b.mounts && a.secrets[0].value != b.secrets[0].value);
	ASSERT_EQ(b.mounts[1].bytes_len, 3);
	ASSERT(memcmp(b.mounts[1].bytes, "a\0b", 3) == 0);
	policy_done(&a);
	ASSERT_STREQ(b.secrets[0].value, "s3cret");
	ASSERT_STREQ(b.network.allow[0].methods.items[0], "GET");
}

TEST(the_fingerprint_sees_every_field_and_the_secrets)
{
	cleanup_policy struct policy a = rich(), b = rich();
	uint8_t ha[32], hb[32];

	ASSERT(policy_hash(&a, ha) == 0);
	b.secrets[0].value[0] = 'S';
	ASSERT(policy_hash(&b, hb) == 0 && memcmp(ha, hb, 32) != 0);
	b.secrets[0].value[0] = 's';
	ASSERT(policy_hash(&b, hb) == 0 && memcmp(ha, hb, 32) == 0);
	for (size_t i = 0; i < field_count; i++) {
		const struct field *f = &field_table[i];
		if (f->kind != &kind_number)
			continue;
		uint64_t *v = kind_value(f, &b), old = *v;
		*v = 12345;
		ASSERT(policy_hash(&b, hb) == 0 && memcmp(ha, hb, 32) != 0);
		*v = old;
	}
}
