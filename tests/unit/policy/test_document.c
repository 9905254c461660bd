/* unit/policy/test_document.c - policies as JSON, both ways, and what is refused. */
#include "harness/test.h"
#include "policy/policy.h"

static struct policy p;
static struct cordon_error *error;

/* Applies over a standard policy and checks it; "" when that worked, else the message. */
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
	ASSERT_EQ(cordon_error_code(error), CORDON_INVALID);
	finish();
}

static void accepts(const char *text)
{
	const char *message = apply(text);

	if (message[0])
		test_fail(__FILE__, __LINE__, "%s gives '%s'", text, message);
}

TEST(numbers_are_positive_integers)
{
	refuses("{\"timeout_ms\": -1}", "timeout_ms must be a single positive number, got: -1");
	refuses("{\"timeout_ms\": 0}", "timeout_ms must be a single positive number, got: 0");
	refuses("{\"timeout_ms\": \"ten\"}",
		"timeout_ms must be a single positive number, got: ten");
	refuses("{\"timeout_ms\": [10, 20]}",
		"timeout_ms must be a single positive number, got: [10,20]");
	refuses("{\"timeout_ms\": true}", "must be a single positive number, got: true");
	refuses("{\"timeout_ms\": 1.5}", "must be a single positive whole number, got: 1.5");
	refuses("{\"timeout_ms\": 1e300}", "must be a single positive whole number");
	refuses("{\"network\": {\"connections\": {}}}",
		"network.connections must be a single positive number, got: {}");
	accepts("{\"timeout_ms\": 1500, \"grace_ms\": 0.0, \"memory_bytes\": 536870912.0}");
	ASSERT_EQ(p.grace_ms, 0);
	ASSERT_EQ(p.timeout_ms, 1500);
	ASSERT_EQ(p.memory_bytes, 536870912);
	finish();
}

TEST(only_some_numbers_can_be_unlimited)
{
	accepts("{\"timeout_ms\": null, \"cpu_seconds\": \"none\", \"tool_calls\": \"unlimited\"}");
	ASSERT(p.timeout_ms == POLICY_UNLIMITED && p.cpu_seconds == POLICY_UNLIMITED);
	ASSERT(p.tool_calls == POLICY_UNLIMITED);
	refuses("{\"memory_bytes\": null}", "memory_bytes cannot be unlimited");
	refuses("{\"processes\": \"unlimited\"}", "processes cannot be unlimited");
}

TEST(ranges)
{
	refuses("{\"timeout_ms\": 86400001}", "timeout_ms must be at most 86400000 (24 h)");
	refuses("{\"memory_bytes\": 1048576}", "memory_bytes must be at least 16777216 (16 MiB)");
	refuses("{\"open_files\": 15}", "open_files must be at least 16");
	refuses("{\"stack_bytes\": 1073741824}",
		"stack_bytes (1073741824) is more than memory_bytes");
	accepts("{\"file_bytes\": 1099511627776}");
	finish();
}

TEST(unknown_fields_are_refused_with_the_nearest_and_all_valid_ones)
{
	refuses("{\"timout_ms\": 1}",
		"Unknown policy field 'timout_ms'. Did you mean 'timeout_ms'? "
		"Valid fields: level, timeout_ms, ");
	refuses("{\"zzzzzzzzzzzz\": 1}",
		"Unknown policy field 'zzzzzzzzzzzz'. Valid fields: level, ");
	refuses("{\"timout_ms\": 1}", "network, packages, limits");
	refuses("{\"network\": {\"alow\": []}}",
		"Unknown policy field 'network.alow'. Did you mean 'network.allow'? Valid fields: "
		"network.allow, network.block, ");
	refuses("{\"network.allow\": []}", "Unknown policy field 'network.allow'");
	refuses("{\"network\": []}", "network must be an object");
	refuses("[]", "a policy must be a JSON object, got: []");
}

TEST(limits_by_their_short_names)
{
	refuses("{\"limits\": {\"bogus\": 10}}", "Unknown limit name(s): bogus. Valid names: cpu, "
						 "memory, fsize, nproc, nofile, stack");
	refuses("{\"limits\": {\"a\": 1, \"cpu\": 1, \"b\": 2}}",
		"Unknown limit name(s): a, b. Valid");
	refuses("{\"limits\": {\"cpu\": -1}}",
		"Limit 'cpu' must be a single positive number, got: -1");
	refuses("{\"limits\": {\"cpu\": 0}}",
		"Limit 'cpu' must be a single positive number, got: 0");
	refuses("{\"limits\": {\"cpu\": \"ten\"}}",
		"Limit 'cpu' must be a single positive number, got: ten");
	refuses("{\"limits\": {\"cpu\": [10, 20]}}",
		"Limit 'cpu' must be a single positive number");
	refuses("{\"limits\": 3}", "limits must be an object");
	refuses("{\"cpu\": 3}", "Unknown policy field 'cpu'");
	accepts("{\"limits\": {\"cpu\": 1, \"memory\": 104857600, \"fsize\": 2, \"nproc\": 3, "
		"\"nofile\": 40, \"stack\": 65536}}");
	ASSERT_EQ(p.cpu_seconds, 1);
	ASSERT_EQ(p.memory_bytes, 104857600);
	ASSERT_EQ(p.file_bytes, 2);
	ASSERT_EQ(p.processes, 3);
	ASSERT_EQ(p.open_files, 40);
	ASSERT_EQ(p.stack_bytes, 65536);
	finish();
}

TEST(a_level_comes_first_wherever_it_stands)
{
	accepts("{\"timeout_ms\": 7, \"level\": \"strict\"}");
	ASSERT_EQ(p.timeout_ms, 7);
	ASSERT_EQ(p.processes, 16);
	ASSERT_EQ(p.level, LEVEL_STRICT);
	refuses("{\"level\": \"lax\"}", "level must be permissive, standard or strict, got: lax");
	refuses("{\"level\": \"none\"}", "level must be permissive, standard or strict, got: none");
}

TEST(lists)
{
	accepts("{\"modules\": [\"math\", \"os.path\", \"math\"], \"commands\": \"*\", \"tools\": "
		"[]}");
	ASSERT_EQ(p.modules.names.count, 2);
	ASSERT(!p.modules.all && p.commands.all && !p.tools.all);
	accepts("{\"modules\": [\"*\"]}");
	ASSERT(p.modules.all && p.modules.names.count == 0);
	accepts("{\"modules\": \"strict\"}");
	ASSERT_EQ(p.modules.names.count, 3);
	accepts("{\"modules\": \"standard\"}");
	ASSERT_EQ(p.modules.names.count, 4);
	accepts("{\"modules\": \"permissive\"}");
	ASSERT_EQ(p.modules.names.count, 6);
	refuses("{\"modules\": \"math\"}", "modules must be \"*\" or a list of names, got: math");
	refuses("{\"commands\": \"strict\"}", "commands must be \"*\" or a list of names");
	refuses("{\"modules\": [3]}", "modules[0] must be the name of a Python module, got: 3");
	refuses("{\"modules\": [\"a b\"]}", "modules[0] must be the name of a Python module");
	refuses("{\"commands\": [\"ls\", \"/bin/sh\"]}",
		"commands[1] must be the name of a command");
	refuses("{\"tools\": [\"1x\"]}", "tools[0] must be the name of a tool, got: 1x");
	refuses("{\"modules\": [\"a\\u0000b\"]}", "modules[0] must be the name of a Python module");
	refuses("{\"preload\": [\"numpy\"], \"modules\": [\"math\"]}",
		"preload names numpy, which modules does not allow");
}

TEST(environment)
{
	accepts("{\"env\": [\"LANG\", \"MY_VAR\"], \"env_set\": {\"A\": \"1=2\", \"B\": \"\"}}");
	ASSERT_STREQ(p.env_set.items[0], "A=1=2");
	ASSERT_STREQ(p.env_set.items[1], "B=");
	accepts("{\"env_set\": [\"A=1\"]}");
	ASSERT_STREQ(p.env_set.items[0], "A=1");
	refuses("{\"env\": [\"LD_PRELOAD\"]}", "env[0] must be a variable's name that may cross");
	refuses("{\"env\": [\"PYTHONPATH\"]}", "never do");
	refuses("{\"env\": \"*\"}", "env must be a list of names");
	refuses("{\"env_set\": {\"1x\": \"a\"}}", "env_set: '1x' is not a variable's name");
	refuses("{\"env_set\": {\"LD_PRELOAD\": \"a\"}}", "env_set: 'LD_PRELOAD' is not");
	refuses("{\"env_set\": {\"A\": 1}}", "env_set.A must be a text");
	refuses("{\"env_set\": [\"A=1\", \"A=2\"]}", "env_set sets 'A' twice");
}

TEST(words)
{
	accepts("{\"python\": \"/opt/v/bin/python3\", \"validate\": false, \"audit\": "
		"\"log.jsonl\"}");
	ASSERT_STREQ(p.python, "/opt/v/bin/python3");
	refuses("{\"python\": \"python3\"}",
		"python must be an absolute path without '..', got: python3");
	refuses("{\"python\": \"/a/../b\"}", "python must be an absolute path");
	refuses("{\"result_name\": \"a b\"}", "result_name must be a variable's name");
	refuses("{\"audit\": \"/dev/null\"}", "audit must be a file's path, not below /dev");
	refuses("{\"audit\": \"\"}", "audit must be a file's path");
	refuses("{\"validate\": 1}", "validate must be true or false, got: 1");
	accepts("{\"require\": [\"seccomp\", \"user\"]}");
	ASSERT_EQ(p.require, LAYER_SECCOMP | LAYER_USERNS);
	accepts("{\"require\": \"*\"}");
	ASSERT_EQ(p.require, 0x3fff);
	refuses("{\"require\": [\"secomp\"]}", "unknown layer 'secomp'. Did you mean 'seccomp'?");
	refuses("{\"require\": \"all\"}", "require must be \"*\" or a list of layers");
}

TEST(a_written_policy_reads_back_the_same)
{
	cleanup_free char *first = NULL, *second = NULL;

	accepts("{\"level\": \"strict\", \"mounts\": [\"/a:/b:rw\", {\"guest\": \"/x\", \"bytes\": "
		"\"\"}],"
		"\"network\": {\"allow\": [\"a.org\", \"[::1]:80\", {\"host\": \"*.b.org\", "
		"\"path\": \"/v\"}]},"
		"\"env_set\": {\"A\": \"1\"}, \"timeout_ms\": null, \"modules\": \"strict\"}");
	cleanup_json json_t *j = policy_to_json(&p);
	first = json_text(j, NULL);
	ASSERT(first && !strcmp(apply(first), ""));
	cleanup_json json_t *k = policy_to_json(&p);
	second = json_text(k, NULL);
	ASSERT_STREQ(second, first);
	ASSERT(strstr(first, "{\"level\":\"strict\",\"timeout_ms\":null,\"grace_ms\":1000,\"cpu_"
			     "seconds\":10,") == first);
	finish();
}

TEST(secrets_are_never_shown)
{
	accepts("{\"network\": {\"allow\": [\"h.org\"]}, \"secrets\": [{\"name\": \"K\", "
		"\"value\": "
		"\"hunter2\", \"host\": \"h.org\", \"header\": \"X-Key\"}]}");
	cleanup_json json_t *j = policy_to_json(&p);
	cleanup_free char *text = json_text(j, NULL);
	ASSERT(text && strstr(text, "\"X-Key\"") && !strstr(text, "hunter2"));
	ASSERT(!strstr(apply("{\"secrets\": {\"value\": \"hunter2\"}}"), "hunter2"));
	ASSERT(!strstr(apply("{\"secrets\": [\"hunter2\"]}"), "hunter2"));
	ASSERT(!strstr(apply("{\"secrets\": [{\"name\": \"K\", \"host\": \"h.org\", \"value\": "
			     "\"hunter2\\n\"}]}"),
		       "hunter2"));
	finish();
}

TEST(files)
{
	cleanup_error struct cordon_error *e = NULL;
	char path[] = "/tmp/cordon-policy-XXXXXX";
	int fd = mkstemp(path);

	ASSERT(fd >= 0 && write(fd, "{\"timeout_ms\": 5,}", 18) == 18 && close(fd) == 0);
	ASSERT(policy_init_level(&p, LEVEL_STANDARD, NULL) == 0);
	ASSERT_EQ(policy_apply_file(&p, path, &e), -CORDON_INVALID);
	ASSERT(strstr(cordon_error_message(e), path));
	e = cordon_error_free(e);
	ASSERT_EQ(unlink(path), 0);
	ASSERT_EQ(policy_apply_file(&p, path, &e), -CORDON_NOT_FOUND);
	e = cordon_error_free(e);
	ASSERT(policy_apply_file(&p, "/tmp", &e) < 0);
	finish();
}
