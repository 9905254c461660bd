#include <string.h>

#include "harness/test.h"
#include "modules/installer.h"

static struct policy with(const char *const *settings)
{
	struct policy p;

	ASSERT(policy_init_level(&p, LEVEL_STRICT, NULL) == 0);
	for (; *settings; settings++)
		ASSERT(policy_apply_set(&p, *settings, NULL) == 0);
	return p;
}

#define WITH(...) with((const char *const[]){ __VA_ARGS__, NULL })

TEST(a_manager_is_found_by_its_language_and_its_name)
{
	ASSERT_STREQ(package_manager_find("python")->name, "pip");
	ASSERT_STREQ(package_manager_find("pip")->name, "pip");
	ASSERT_STREQ(package_manager_find("node")->name, "npm");
	ASSERT_STREQ(package_manager_find("r")->name, "cran");
	ASSERT(!package_manager_find("sh"));
	ASSERT(!package_manager_find("pod"));
	ASSERT(!package_manager_find("nothing"));
}

TEST(only_what_the_policy_names)
{
	static const struct {
		const char *manager, *spec;
		int code;
	} cases[] = {
		{ "pip", "tool-kit", 0 },
		{ "pip", "Tool_Kit", 0 },
		{ "pip", "tool.-_kit", 0 },
		{ "pip", "tool-kit==1.0", 0 },
		{ "pip", "tool-kit[extra]>=1,<2", 0 },
		{ "pip", "tool-kit >= 1", 0 },
		{ "pip", "toolkit", CORDON_DENIED },
		{ "pip", "tool-kit-", CORDON_DENIED },
		{ "pip", "requirements.txt", CORDON_DENIED },
		{ "pip", "", CORDON_INVALID },
		{ "pip", "-r", CORDON_INVALID },
		{ "pip", "--index-url=x", CORDON_INVALID },
		{ "pip", "tool-kit @ http://x", CORDON_INVALID },
		{ "pip", "tool-kit other", CORDON_INVALID },
		{ "pip", "tool-kit ", CORDON_INVALID },
		{ "pip", "tool-kit\n", CORDON_INVALID },
		{ "pip", "./tool-kit", CORDON_INVALID },
		{ "pip", "tool-kit;x", CORDON_INVALID },
		{ "npm", "left-pad", 0 },
		{ "npm", "left-pad@^1.0", 0 },
		{ "npm", "@scope/name", 0 },
		{ "npm", "@scope/name@1.x", 0 },
		{ "npm", "Left-pad", CORDON_DENIED },
		{ "npm", "@scope/other", CORDON_DENIED },
		{ "npm", "left-pad@npm:other", CORDON_INVALID },
		{ "npm", "left-pad@file:../x", CORDON_INVALID },
		{ "npm", "user/repo", CORDON_INVALID },
		{ "npm", "@/x", CORDON_INVALID },
		{ "npm", "@scope/../x", CORDON_INVALID },
		{ "npm", "@scope", CORDON_INVALID },
		{ "cran", "data.table", 0 },
		{ "cran", "Data.table", CORDON_DENIED },
		{ "cran", "data.table@1", CORDON_INVALID },
		{ "cran", "a/b", CORDON_INVALID },
	};
	cleanup_policy struct policy p =
		WITH("packages.pip=tool-kit", "packages.npm=left-pad,@scope/name",
		     "packages.cran=data.table");

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cleanup_error struct cordon_error *e = NULL;
		const struct package_manager *m = package_manager_find(cases[i].manager);
		int r = package_request_check(m, &p, cases[i].spec, &e);
		if (r != -cases[i].code)
			test_fail(__FILE__, __LINE__, "%s '%s' gives %d: %s", cases[i].manager,
				  cases[i].spec, r, r < 0 ? cordon_error_message(e) : "");
	}
}

TEST(a_denial_names_the_remedy)
{
	cleanup_policy struct policy p = WITH("packages.pip=a");
	cleanup_error struct cordon_error *e = NULL;

	ASSERT_EQ(package_request_check(package_manager_find("pip"), &p, "b>=2", &e),
		  -CORDON_DENIED);
	ASSERT(strstr(cordon_error_message(e), "(packages.pip+=b)"));
}

TEST(the_sandbox_of_an_installation_has_the_registry_and_nothing_else)
{
	cleanup_policy struct policy p =
		WITH("packages.pip_index=http://localhost:8080/simple,https://files.example",
		     "network.allow=other.example", "mounts=/usr/share:/data", "env_set.A=b",
		     "secrets=[{\"name\": \"S\", \"value\": \"v\", \"host\": \"other.example\"}]",
		     "packages.bytes=64M");
	cleanup_policy struct policy ret = { 0 };

	ASSERT_EQ(install_policy(package_manager_find("pip"), &p, &ret, NULL), 0);
	ASSERT_EQ(ret.network.allow_count, 2);
	ASSERT_STREQ(ret.network.allow[0].host, "127.0.0.1");
	ASSERT_EQ(ret.network.allow[0].port, 8080);
	ASSERT_EQ(ret.network.allow[0].methods.count, 2);
	ASSERT_STREQ(ret.network.allow[1].host, "files.example");
	ASSERT_EQ(ret.network.allow[1].port, 443);
	ASSERT_EQ(ret.mount_count + ret.secret_count + ret.env_set.count, 0);
	ASSERT(!ret.tools.all && ret.tools.names.count == 0 && !ret.workspace_exec);
	ASSERT_EQ(ret.fs_bytes, 64 << 20);
	ASSERT_EQ(ret.require, p.require);
}

TEST(a_directory_is_a_read_only_mount_without_a_network)
{
	cleanup_policy struct policy p =
		WITH("packages.npm_registry=/srv/npm", "network.allow=x.example");
	cleanup_policy struct policy ret = { 0 };

	ASSERT_EQ(install_policy(package_manager_find("npm"), &p, &ret, NULL), 0);
	ASSERT_EQ(ret.network.allow_count + ret.network.block_count, 0);
	ASSERT_EQ(ret.mount_count, 1);
	ASSERT_STREQ(ret.mounts[0].host, "/srv/npm");
	ASSERT_EQ(ret.mounts[0].mode, MOUNT_LIVE_RO);
}

TEST(addresses_that_name_no_host_are_refused)
{
	static const char *const bad[] = {
		"packages.pip_index=ftp://x",     "packages.pip_index=http://",
		"packages.pip_index=http:///x",   "packages.pip_index=http://u:p@x/",
		"packages.pip_index=relative/x",  "packages.pip_index=/a/../b",
		"packages.pip_index=https://x?y",
	};
	static const char *const later[] = { "packages.pip_index=http://x:y/",
					     "packages.pip_index=http://x:99999",
					     "packages.pip_index=http://[::1",
					     "packages.pip_index=http://x,/srv" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		cleanup_policy struct policy p = WITH("packages.pip=a");
		ASSERT_EQ(policy_apply_set(&p, bad[i], NULL), -CORDON_INVALID);
	}
	for (size_t i = 0; i < sizeof(later) / sizeof(*later); i++) {
		cleanup_policy struct policy p = WITH(later[i]), ret = { 0 };
		ASSERT_EQ(install_policy(package_manager_find("pip"), &p, &ret, NULL),
			  -CORDON_INVALID);
	}
}

TEST(the_older_name_of_the_packages_of_pods)
{
	cleanup_policy struct policy p = WITH("packages=a,b", "packages+=c");
	cleanup_json json_t *j = json_pack("{s:[s]}", "packages", "d");

	ASSERT_EQ(p.packages.names.count, 3);
	ASSERT_EQ(policy_apply_json(&p, j, NULL), 0);
	ASSERT_STREQ(p.packages.names.items[0], "d");
}
