/* unit/tools/test_extensions.c - what `extensions` prints. */
#include "unit/tools/bench.h"

static struct bench b;

static void check(const char *args, int code, const char *out, const char *err)
{
	struct tool_calls_answer a;
	char call_args[200];
	cleanup_json json_t *j = NULL;

	snprintf(call_args, sizeof(call_args), "{\"args\":%s}", args);
	ASSERT_EQ(call(&b, 1, "extensions", call_args, &a), 1);
	ASSERT_EQ(json_parse(a.text, a.len, 0, &j, NULL), 0);
	ASSERT_EQ(json_integer_value(json_object_get(j, "exit_code")), code);
	if (!strstr(json_string_value(json_object_get(j, "stdout")), out) ||
	    !strstr(json_string_value(json_object_get(j, "stderr")), err))
		test_fail(__FILE__, __LINE__, "%s: %s", args, a.text);
}

TEST(extensions)
{
	bench_init(&b, tools_new(), NULL);
	bench_open(&b, NULL, NULL, NULL);
	check("[\"list\"]", 0, "No extensions.\n", "");
	tools_put(b.tools, (struct cordon_tool){ .name = "find_it",
						 .description = "Finds it.",
						 .category = "search",
						 .fn = fail_always,
						 .args_json = "{\"q\":\"string\"}" });
	tools_put(b.tools, (struct cordon_tool){ .name = "greet",
						 .description = "Greets.",
						 .fn = fail_always,
						 .command = true });
	check("[\"list\"]", 0, "greet                -            Greets.\n", "");
	check("[\"list\",\"--category\",\"search\"]", 0,
	      "find_it              search       Finds it.\n", "");
	check("[\"list\",\"--json\"]", 0, "[{\"name\":\"find_it\"", "");
	check("[\"list\",\"--category=none\",\"--json\"]", 0, "[]\n", "");
	check("[\"info\",\"find_it\"]", 0, "Category:    search\nArgument:    q \"string\"\n", "");
	check("[\"info\",\"nope\"]", 1, "", "unknown extension: nope");
	check("[\"info\"]", 1, "", "info needs a name");
	check("[\"bad\"]", 1, "", "Usage: extensions list");
	check("[\"list\",\"--x\"]", 1, "", "unknown option: --x");
	check("[\"list\",5]", 1, "", "unknown option");
	check("[\"--help\"]", 0, "Usage: extensions list", "");
	check("[]", 1, "", "a subcommand is missing");
	check("5", 1, "", "a subcommand is missing");
	bench_done(&b);
}
