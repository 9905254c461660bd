/* unit/tools/test_command.c - host commands as tools. */
#include <sys/stat.h>

#include "base/file.h"
#include "unit/tools/bench.h"

static struct bench b;

static void setup(const char *tools_json)
{
	cleanup_error struct cordon_error *e = NULL;
	bench_init(&b, tools_new(), NULL);
	if (cordon_tools_add_json(b.tools, tools_json, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	bench_open(&b, NULL, NULL, NULL);
}

static void run(const char *tool, const char *args, enum tool_calls_cause cause, const char *want)
{
	struct tool_calls_answer a;
	static uint64_t number;
	int r = call(&b, ++number, tool, args, &a);
	if (r == 0)
		r = wait_next(&b, 10000, &a);
	ASSERT_EQ(r, 1);
	expect(&a, number, cause, want);
}

#define SH(name, script)                                                                           \
	"{\"name\":\"" name "\",\"args\":{\"a\":null},\"command\":[\"/bin/sh\",\"-c\",\"" script   \
	"\"]}"

TEST(json_in_json_out)
{
	setup("[" SH("echo", "cat") "," SH("none", "true") "," SH("two", "echo ' 2 '; echo") "," SH(
		"broken",
		"echo hello") "," SH("fail",
				     "echo oops >&2; exit 3") "," SH("quiet",
								     "exit 4") "," SH("killed",
										      "kill -9 $$") "]");
	run("echo", "{\"a\":[1,\"x\"]}", TOOL_CALLS_VALUE, "{\"a\":[1,\"x\"]}");
	run("none", "{\"a\":1}", TOOL_CALLS_VALUE, "null");
	run("two", "{\"a\":1}", TOOL_CALLS_VALUE, " 2");
	run("broken", "{\"a\":1}", TOOL_CALLS_FAILED, "the command's output is not JSON");
	run("fail", "{\"a\":1}", TOOL_CALLS_FAILED, "oops");
	run("quiet", "{\"a\":1}", TOOL_CALLS_FAILED, "the command failed with status 4");
	run("killed", "{\"a\":1}", TOOL_CALLS_FAILED, "the command was ended by signal 9");
	run("echo", "{}", TOOL_CALLS_BAD_ARGS, "Missing arguments for tool 'echo': 'a'");
	bench_done(&b);
}

TEST(plain_commands)
{
	setup("{\"tools\":[{\"name\":\"up\",\"argv\":true,\"command\":[\"/bin/sh\",\"-c\","
	      "\"echo $# $1; tr a-z A-Z; echo bad >&2; exit 5\",\"x\"]}]}");
	run("up", "{\"args\":[\"one two\",3],\"stdin\":\"hello\\n\"}", TOOL_CALLS_VALUE,
	    "{\"stdout\":\"2 one two\\nHELLO\\n\",\"stderr\":\"bad\\n\",\"exit_code\":5}");
	run("up", "{}", TOOL_CALLS_VALUE,
	    "{\"stdout\":\"0\\n\",\"stderr\":\"bad\\n\",\"exit_code\":5}");
	run("up", "{\"args\":[\"a\\u0000b\"]}", TOOL_CALLS_FAILED,
	    "Tool 'up': an argument has a NUL character");
	bench_done(&b);
}

TEST(bytes_pass_as_they_are)
{
	setup("[{\"name\":\"cat\",\"argv\":true,\"command\":[\"cat\"]},"
	      "{\"name\":\"twice\",\"argv\":true,\"command\":[\"sh\",\"-c\",\"cat; printf "
	      "'\\\\377'\"]}]");
	run("cat", "{\"stdin\":{\"$\":\"bytes\",\"v\":\"/wD+\"}}", TOOL_CALLS_VALUE,
	    "{\"stdout\":{\"$\":\"bytes\",\"v\":\"/wD+\"},\"stderr\":\"\",\"exit_code\":0}");
	run("cat", "{\"stdin\":{\"$\":\"bytes\",\"v\":\"aGk=\"}}", TOOL_CALLS_VALUE,
	    "{\"stdout\":\"hi\",\"stderr\":\"\",\"exit_code\":0}");
	run("twice", "{\"stdin\":\"a\"}", TOOL_CALLS_VALUE,
	    "{\"stdout\":{\"$\":\"bytes\",\"v\":\"Yf8=\"},\"stderr\":\"\",\"exit_code\":0}");
	run("cat", "{\"stdin\":{\"$\":\"bytes\",\"v\":\"a\"}}", TOOL_CALLS_BAD_ARGS,
	    "Tool 'cat': argument 'stdin' must be string or bytes, got another kind of value");
	run("cat", "{\"stdin\":{\"v\":\"aGk=\"}}", TOOL_CALLS_BAD_ARGS,
	    "Tool 'cat': argument 'stdin' must be string or bytes, got object");
	bench_done(&b);
}

/* One string of the given length as the argument `name`. */
static char *long_args(const char *name, size_t len)
{
	char *text = malloc(len + 64);
	ASSERT(text);
	int head = snprintf(text, 64, "{\"%s\":\"", name);
	memset(text + head, 'x', len);
	memcpy(text + head + len, "\"}", 3);
	return text;
}

TEST(every_tool_has_its_own_sizes)
{
	const size_t MIB = 1 << 20;
	struct tool_calls_answer a;
	setup("[{\"name\":\"f\",\"args\":{\"a\":\"string\"},\"command\":[\"cat\"]},"
	      "{\"name\":\"tiny\",\"args\":{\"a\":\"string\"},\"argument_bytes\":16,\"command\":["
	      "\"cat\"]},"
	      "{\"name\":\"wide\",\"args\":{\"a\":\"string\"},\"argument_bytes\":3000000,"
	      "\"result_bytes\":3000000,\"command\":[\"cat\"]},"
	      "{\"name\":\"count\",\"argv\":true,\"command\":[\"wc\",\"-c\"]},"
	      "{\"name\":\"wait\",\"argv\":true,\"command\":[\"sleep\",\"100\"]}]");
	ASSERT_EQ(tool_calls_argument_max(b.calls), 16 * MIB);
	cleanup_free char *two = long_args("a", 2 * MIB), *five = long_args("stdin", 5 * MIB),
			  *much = long_args("stdin", 16 * MIB);
	run("f", two, TOOL_CALLS_BAD_ARGS,
	    "Tool 'f': arguments too large (2097160 bytes, max 1048576)");
	run("tiny", "{\"a\":\"0123456789\"}", TOOL_CALLS_BAD_ARGS,
	    "Tool 'tiny': arguments too large (18 bytes, max 16)");
	run("wide", two, TOOL_CALLS_VALUE, two);
	run("count", five, TOOL_CALLS_VALUE,
	    "{\"stdout\":\"5242880\\n\",\"stderr\":\"\",\"exit_code\":0}");
	run("count", much, TOOL_CALLS_BAD_ARGS,
	    "Tool 'count': arguments too large (16777228 bytes, max 16777216)");
	/* Calls that wait keep their arguments in the host, so those have a limit in all. */
	for (int i = 0; i < 12; i++)
		ASSERT_EQ(call(&b, 100 + (uint64_t)i, "wait", five, &a), 0);
	ASSERT_EQ(call(&b, 200, "wait", five, &a), 1);
	expect(&a, 200, TOOL_CALLS_BUDGET, "too many bytes in tool calls at once (max 67108864)");
	tool_calls_end(b.calls);
	tool_calls_begin(b.calls, UINT64_MAX);
	ASSERT_EQ(call(&b, 1, "wait", five, &a), 0);
	bench_done(&b);
}

TEST(output_that_waits_is_bounded_in_all)
{
	struct tool_calls_answer a;
	int failed = 0;
	/* Each keeps 15 MiB and goes on running: five of them are too much. */
	setup("[{\"name\":\"hold\",\"argv\":true,\"command\":[\"sh\",\"-c\","
	      "\"head -c 15728640 /dev/zero; exec sleep 100\"]}]");
	for (uint64_t i = 1; i <= 5; i++)
		ASSERT_EQ(call(&b, i, "hold", "{}", &a), 0);
	while (failed == 0 && wait_next(&b, 20000, &a) == 1) {
		failed++;
		ASSERT_STREQ(a.text, "too many bytes in tool calls at once (max 67108864)");
	}
	ASSERT_EQ(failed, 1);
	bench_done(&b);
}

TEST(a_slow_command_dies_with_its_group)
{
	char path[] = "/tmp/cordon-command-XXXXXX", json[400];
	close(mkstemp(path));
	snprintf(json, sizeof(json),
		 "[{\"name\":\"slow\",\"timeout_ms\":200,\"command\":[\"/bin/sh\",\"-c\","
		 "\"sleep 100 & echo $! > %s; wait\"]},"
		 "{\"name\":\"leaver\",\"command\":[\"/bin/sh\",\"-c\","
		 "\"sleep 100 & echo $! > %s; echo 1\"]}]",
		 path, path);
	setup(json);
	for (int i = 0; i < 2; i++) {
		if (i == 0)
			run("slow", "{}", TOOL_CALLS_TIMEOUT,
			    "Tool 'slow' timed out after 0.2 seconds");
		else
			run("leaver", "{}", TOOL_CALLS_VALUE, "1");
		cleanup_buf struct buf text = { 0 };
		ASSERT_EQ(file_load(path, 100, &text, NULL), 0);
		int pid = atoi(text.data);
		ASSERT(pid > 1);
		char proc[64];
		snprintf(proc, sizeof(proc), "/proc/%d/exe", pid);
		for (int tries = 0; tries < 200 && access(proc, F_OK) == 0; tries++)
			usleep(10000);
		ASSERT(access(proc, F_OK) < 0); /* gone, or a zombie of init */
	}
	unlink(path);
	bench_done(&b);
}

TEST(output_is_bounded)
{
	setup("[{\"name\":\"yes\",\"result_bytes\":1000,\"command\":[\"yes\"]},"
	      "{\"name\":\"noise\",\"command\":[\"/bin/sh\",\"-c\","
	      "\"head -c 10000000 /dev/zero >&2; echo 1\"]}]");
	run("yes", "{}", TOOL_CALLS_FAILED, "result too large (more than 1000 bytes)");
	run("noise", "{}", TOOL_CALLS_VALUE, "1");
	bench_done(&b);
}

TEST(the_environment_is_small)
{
	ASSERT_EQ(setenv("SECRET_KEY", "s3cret", 1) + setenv("PASSED", "yes", 1), 0);
	setup("[{\"name\":\"env\",\"argv\":true,\"command\":[\"env\"],\"env\":{\"EXTRA\":\"1\"},"
	      "\"env_pass\":[\"PASSED\",\"ABSENT\"]},"
	      "{\"name\":\"fds\",\"argv\":true,\"command\":[\"/bin/sh\",\"-c\",\"ls "
	      "/proc/$$/fd\"]}]");
	struct tool_calls_answer a;
	ASSERT_EQ(call(&b, 1, "env", "{}", &a), 0);
	ASSERT_EQ(wait_next(&b, 5000, &a), 1);
	ASSERT(strstr(a.text, "EXTRA=1\\n") && strstr(a.text, "PASSED=yes\\n"));
	ASSERT(strstr(a.text, "CORDON_TOOL=env\\n") && strstr(a.text, "CORDON_SESSION=sess_1\\n"));
	ASSERT(!strstr(a.text, "SECRET") && !strstr(a.text, "ABSENT"));
	run("fds", "{}", TOOL_CALLS_VALUE,
	    "{\"stdout\":\"0\\n1\\n2\\n\",\"stderr\":\"\",\"exit_code\":0}");
	bench_done(&b);
}

TEST(ending_the_execution_ends_the_command)
{
	struct tool_calls_answer a;
	setup("[" SH("slow", "sleep 100; echo 1") "]");
	ASSERT_EQ(call(&b, 1, "slow", "{\"a\":1}", &a), 0);
	tool_calls_end(b.calls);
	ASSERT_EQ(tool_calls_next(b.calls, &a, NULL), 0);
	ASSERT_EQ(call(&b, 2, "slow", "{\"a\":1}", &a), 0);
	bench_done(&b); /* also without a word */
}

TEST(many_commands_at_once)
{
	struct tool_calls_answer a;
	uint64_t sum = 0;
	setup("[" SH("echo", "cat") "]");
	for (uint64_t i = 1; i <= 20; i++) {
		char args[40];
		snprintf(args, sizeof(args), "{\"a\":%d}", (int)i);
		ASSERT_EQ(call(&b, i, "echo", args, &a), 0);
	}
	for (int i = 0; i < 20; i++) {
		char want[40];
		ASSERT_EQ(wait_next(&b, 10000, &a), 1);
		snprintf(want, sizeof(want), "{\"a\":%d}", (int)a.call);
		ASSERT_STREQ(a.text, want);
		sum += a.call;
	}
	ASSERT_EQ(sum, 210);
	bench_done(&b);
}

TEST(what_cannot_start_is_told)
{
	setup("[{\"name\":\"gone\",\"command\":[\"/nonexistent/program\"]}]");
	run("gone", "{}", TOOL_CALLS_FAILED,
	    "start the command of tool 'gone': No such file or directory");
	bench_done(&b);
}

TEST(files_and_their_directory)
{
	char dir[] = "/tmp/cordon-tools-XXXXXX", path[64], script[64];
	ASSERT(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/tools.json", dir);
	snprintf(script, sizeof(script), "%s/add", dir);
	const char *text =
		"[{\"name\":\"add\",\"args\":{\"a\":\"number\"},\"command\":[\"./add\"]}]";
	const char *code = "#!/bin/sh\ncat >/dev/null; pwd | sed 's/.*/\"&\"/'\n";
	ASSERT_EQ(file_save(path, 0600, text, strlen(text), NULL), 0);
	ASSERT_EQ(file_save(script, 0700, code, strlen(code), NULL), 0);
	bench_init(&b, tools_new(), NULL);
	ASSERT_EQ(cordon_tools_add_file(b.tools, path, NULL), 0);
	bench_open(&b, NULL, NULL, NULL);
	char want[80];
	snprintf(want, sizeof(want), "\"%s\"", dir);
	run("add", "{\"a\":1}", TOOL_CALLS_VALUE, want);
	ASSERT_EQ(unlink(path) + unlink(script) + rmdir(dir), 0);
	bench_done(&b);
}

TEST(bad_descriptions_are_refused)
{
	static const struct {
		const char *json, *want;
	} bad[] = {
		{ "{}", "tools must be a list" },
		{ "5", "tools must be a list" },
		{ "[1]", "/tools/0 must be an object" },
		{ "[{\"name\":\"x\"}]", "/tools/0/command must be a list" },
		{ "[{\"name\":\"x\",\"command\":\"ls\"}]", "/tools/0/command must be an array" },
		{ "[{\"name\":\"x\",\"command\":[]}]", "/tools/0/command must be a list" },
		{ "[{\"name\":\"x\",\"command\":[1]}]",
		  "/tools/0/command must be a list of strings" },
		{ "[{\"name\":\"my x\",\"command\":[\"ls\"]}]", "valid identifier" },
		{ "[{\"name\":\"x\",\"command\":[\"ls\"],\"timeout\":5}]",
		  "did you mean 'timeout_ms'" },
		{ "[{\"name\":\"x\",\"command\":[\"ls\"],\"timeout_ms\":-5}]",
		  "/timeout_ms must be" },
		{ "[{\"name\":\"x\",\"command\":[\"ls\"],\"env\":{\"A=B\":\"c\"}}]",
		  "/env must be" },
		{ "[{\"name\":\"x\",\"command\":[\"ls\"],\"args\":{\"a\":\"numbr\"}}]",
		  "unknown type" },
		{ "[{\"name\":\"x\",\"command\":[\"ls\"]},{\"name\":\"x\",\"command\":[\"ls\"]}]",
		  "Duplicate tool names: \"x\"" },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		cleanup_error struct cordon_error *e = NULL;
		struct cordon_tools *t = tools_new();
		ASSERT(cordon_tools_add_json(t, bad[i].json, &e) < 0);
		if (!strstr(cordon_error_message(e), bad[i].want))
			test_fail(__FILE__, __LINE__, "%s: %s", bad[i].json,
				  cordon_error_message(e));
		cordon_tools_unref(t);
	}
}
