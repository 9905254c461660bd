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
	check("[\"list\"]", 0, "(no extensions registered)\n", "");
	tools_put(b.tools, (struct cordon_tool){ .name = "find_it",
						 .description = "Finds it.",
						 .category = "search",
						 .fn = fail_always,
						 .args_json = "{\"q\":\"string\"}" });
	tools_put(b.tools, (struct cordon_tool){ .name = "greet",
						 .description = "Greets.",
						 .fn = fail_always,
						 .command = true,
						 .usage = "greet NAME",
						 .examples = (const char *const[]){
							 "greet a", "greet b", NULL } });
	check("[\"list\"]", 0,
	      "NAME     CATEGORY  DESCRIPTION\n"
	      "\xe2\x94\x80\xe2\x94\x80",
	      "");
	check("[\"list\"]", 0, "\ngreet              Greets.\n", "");
	check("[\"list\",\"--category\",\"search\"]", 0, "\nfind_it  search    Finds it.\n", "");
	check("[\"list\",\"--category\",\"none\"]", 0, "(no extensions registered)\n", "");
	check("[\"list\",\"--json\"]", 0, "[{\"name\":\"find_it\"", "");
	check("[\"list\",\"--category=none\",\"--json\"]", 0, "[]\n", "");
	check("[\"info\",\"find_it\"]", 0,
	      "Name:        find_it\nCategory:    search\nDescription: Finds it.\nArgument:    q "
	      "\"string\"\n",
	      "");
	check("[\"info\",\"greet\"]", 0, "Category:    \nDescription: Greets.\n", "");
	check("[\"info\",\"greet\"]", 0,
	      "Usage:       greet NAME\nExamples:\n  greet a\n  greet b\n", "");
	check("[\"info\",\"nope\"]", 1, "", "unknown extension: nope");
	check("[\"info\"]", 1, "", "extensions info: missing extension name\n");
	check("[\"bad\"]", 1, "", "unknown subcommand: bad\nUsage: extensions ");
	check("[\"list\",\"--x\"]", 1, "", "unknown option: --x");
	check("[\"list\",5]", 1, "", "unknown option");
	check("[\"--help\"]", 0, "Subcommands:\n", "");
	check("[]", 0, "Subcommands:\n", "");
	check("5", 0, "Subcommands:\n", "");
	bench_done(&b);
}
