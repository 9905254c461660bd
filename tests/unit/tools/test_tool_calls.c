/* unit/tools/test_tool_calls.c - calls from dispatch to answer, with handlers in C. */
#include <sys/resource.h>

#include "base/buf.h"
#include "base/file.h"
#include "unit/tools/bench.h"

#define AB "{\"a\":\"numeric\",\"b\":\"numeric\"}"
#define ADD                                                                                        \
	{                                                                                          \
		.name = "add", .description = "Adds.", .args_json = AB, .fn = add_numbers          \
	}

TEST(a_call_is_answered)
{
	struct bench b;
	struct seen seen = { 0 };
	struct tool_calls_answer a;
	bench_init(&b, tools_new(), NULL);
	tools_put(b.tools,
		  (struct cordon_tool){
			  .name = "add", .args_json = AB, .fn = add_numbers, .arg = &seen });
	tools_put(b.tools, (struct cordon_tool){ .name = "fail", .fn = fail_always });
	bench_open(&b, NULL, NULL, NULL);
	ASSERT_EQ(call(&b, 1, "add", "{\"a\":2,\"b\":3}", &a), 1);
	expect(&a, 1, TOOL_CALLS_VALUE, "5");
	ASSERT_STREQ(a.tool, "add");
	ASSERT_EQ(call(&b, 2, "fail", "{}", &a), 1);
	expect(&a, 2, TOOL_CALLS_FAILED, "tool failed reading [path]");
	ASSERT_EQ(call(&b, 3, "nonexistent", "{}", &a), 1);
	expect(&a, 3, TOOL_CALLS_UNKNOWN, "Unknown tool: nonexistent");
	ASSERT_EQ(call(&b, 4, "../../etc/passwd", "{}", &a), 1);
	expect(&a, 4, TOOL_CALLS_UNKNOWN, "Unknown tool: <invalid>");
	ASSERT_EQ(call(&b, 5, "123bad", "{}", &a), 1);
	expect(&a, 5, TOOL_CALLS_UNKNOWN, "Unknown tool: <invalid>");
	ASSERT_EQ(call(&b, 6, "add", "{\"a\":\"x\",\"b\":3}", &a), 1);
	expect(&a, 6, TOOL_CALLS_BAD_ARGS,
	       "Tool 'add': argument 'a' must be numeric, got character");
	ASSERT_EQ(call(&b, 7, "add", "{\"a\":1,\"b\":3,\"evil\":999}", &a), 1);
	expect(&a, 7, TOOL_CALLS_BAD_ARGS, "Unexpected arguments for tool 'add': 'evil'");
	ASSERT_EQ(seen.calls, 1); /* nothing of that reached the handler */
	ASSERT_EQ(tool_calls_get_calls(b.calls), 7);
	bench_done(&b);
}

TEST(names_are_checked)
{
	static const char *const bad[] = { "x; system(\"id\")", "my tool", "1tool", "tool$name",
					   "" };
	static const char *const good[] = { "my_tool", "tool.name", ".hidden" };
	struct cordon_tools *t = tools_new();
	for (size_t i = 0; i < 5; i++) {
		cleanup_error struct cordon_error *e = NULL;
		struct cordon_tool tool = { .name = bad[i], .fn = fail_always };
		ASSERT_EQ(cordon_tools_add(t, &tool, &e), -CORDON_INVALID);
		ASSERT(strstr(cordon_error_message(e), "valid identifier"));
	}
	for (size_t i = 0; i < 3; i++)
		tools_put(t, (struct cordon_tool){ .name = good[i], .fn = fail_always });
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_tool again = { .name = "my_tool", .fn = fail_always };
	ASSERT_EQ(cordon_tools_add(t, &again, &e), -CORDON_EXISTS);
	ASSERT_STREQ(cordon_error_message(e), "Duplicate tool names: \"my_tool\"");
	again = (struct cordon_tool){ .name = "nothing" };
	ASSERT_EQ(cordon_tools_add(t, &again, NULL), -CORDON_INVALID);
	again = (struct cordon_tool){ .name = "pack",
				      .fn = fail_always,
				      .python_package = "{\"../x.py\":\"\"}" };
	ASSERT_EQ(cordon_tools_add(t, &again, NULL), -CORDON_INVALID);
	cordon_tools_unref(t);
}

TEST(tools_are_listed)
{
	struct cordon_tools *t = tools_new();
	cleanup_free char *empty = cordon_tools_json(t);
	ASSERT_STREQ(empty, "[]");
	tools_put(t, (struct cordon_tool){ .name = "add",
					   .description = "Adds.",
					   .args_json = "{\"a\":\"number\"}",
					   .fn = add_numbers,
					   .category = "math",
					   .approval = true,
					   .python_package = "{\"__init__.py\":\"x = 1\"}" });
	cleanup_free char *text = cordon_tools_json(t);
	ASSERT_STREQ(text, "[{\"name\":\"add\",\"description\":\"Adds.\",\"args\":{\"a\":{\"type\":"
			   "\"number\",\"required\":true}},\"schema\":{\"type\":\"object\","
			   "\"properties\":{\"a\":{\"type\":\"number\"}},\"required\":[\"a\"]},"
			   "\"command\":false,\"category\":\"math\",\"approval\":true,"
			   "\"python_package\":{\"__init__.py\":\"x = 1\"}}]");
	cordon_tools_unref(t);
}

TEST(budgets_hold)
{
	struct bench b;
	struct tool_calls_answer a;
	bench_init(&b, tools_new(), NULL);
	tools_put(b.tools, (struct cordon_tool)ADD);
	tools_put(b.tools,
		  (struct cordon_tool){
			  .name = "twice", .args_json = AB, .fn = add_numbers, .max_calls = 2 });
	bench_open(&b, NULL, NULL, NULL);
	for (int round = 0; round < 2; round++) {
		tool_calls_begin(b.calls, 2);
		for (uint64_t i = 1; i <= 2; i++) {
			ASSERT_EQ(call(&b, i, "add", "{\"a\":1,\"b\":1}", &a), 1);
			expect(&a, i, TOOL_CALLS_VALUE, "2");
		}
		ASSERT_EQ(call(&b, 3, "add", "{\"a\":1,\"b\":1}", &a), 1);
		expect(&a, 3, TOOL_CALLS_BUDGET, "Maximum tool calls (2) exceeded");
	}
	tool_calls_begin(b.calls, UINT64_MAX);
	for (uint64_t i = 1; i <= 3; i++)
		ASSERT_EQ(call(&b, i, "twice", "{\"a\":1,\"b\":1}", &a), 1);
	expect(&a, 3, TOOL_CALLS_BUDGET, "Maximum calls of tool 'twice' (2) exceeded");
	ASSERT_EQ(call(&b, 4, "add", "{\"a\":1,\"b\":1}", &a), 1);
	expect(&a, 4, TOOL_CALLS_VALUE, "2");
	bench_done(&b);
}

TEST(the_list_of_commands_is_for_those_of_the_host_too)
{
	struct bench b;
	struct tool_calls_answer a;
	bench_init(&b, tools_new(), "{\"commands\":[\"echo\",\"open\"]}");
	tools_put(b.tools, (struct cordon_tool)ADD);
	tools_put(b.tools,
		  (struct cordon_tool){ .name = "secret", .fn = fail_always, .command = true });
	tools_put(b.tools,
		  (struct cordon_tool){ .name = "open", .fn = fail_always, .command = true });
	bench_open(&b, NULL, NULL, NULL);
	ASSERT_EQ(call(&b, 1, "secret", "{\"args\":[]}", &a), 1);
	expect(&a, 1, TOOL_CALLS_DENIED, "secret: tool not allowed by security policy");
	ASSERT_EQ(call(&b, 2, "open", "{\"args\":[]}", &a), 1);
	ASSERT_EQ(a.cause, TOOL_CALLS_FAILED);
	ASSERT_EQ(call(&b, 3, "add", "{\"a\":1,\"b\":1}", &a), 1);
	expect(&a, 3, TOOL_CALLS_VALUE, "2");
	ASSERT_EQ(call(&b, 4, "extensions", "{\"args\":[\"list\"]}", &a), 1);
	ASSERT(strstr(a.text, "open") && !strstr(a.text, "secret"));
	bench_done(&b);
}

TEST(the_policy_decides_which_tools)
{
	struct bench b;
	struct tool_calls_answer a;
	bench_init(&b, tools_new(), "{\"tools\":[\"other\"]}");
	tools_put(b.tools, (struct cordon_tool)ADD);
	tools_put(b.tools, (struct cordon_tool){ .name = "other", .fn = fail_always });
	bench_open(&b, NULL, NULL, NULL);
	ASSERT_EQ(call(&b, 1, "add", "{\"a\":1,\"b\":1}", &a), 1);
	expect(&a, 1, TOOL_CALLS_DENIED, "add: tool not allowed by security policy");
	cleanup_free char *text = tool_calls_describe(b.calls);
	ASSERT(strstr(text, "\"other\"") && !strstr(text, "\"add\""));
	ASSERT_EQ(call(&b, 2, "extensions", "{\"args\":[\"list\"]}", &a), 1);
	ASSERT(strstr(a.text, "other") && !strstr(a.text, "add"));
	bench_done(&b);
}

static enum cordon_answer misbehave(struct cordon_call *c, void *arg)
{
	const char *how = arg;
	cleanup_error struct cordon_error *e = NULL;

	if (str_eq(how, "silent"))
		return CORDON_ANSWER_VALUE;
	if (str_eq(how, "bad"))
		ASSERT_EQ(cordon_call_value(c, "{not json", &e), -CORDON_INVALID);
	if (str_eq(how, "large"))
		ASSERT_EQ(cordon_call_value(c, "\"0123456789\"", &e), -CORDON_LIMIT);
	if (str_eq(how, "twice")) {
		ASSERT_EQ(cordon_call_value(c, "1", NULL), 0);
		ASSERT_EQ(cordon_call_value(c, "2", NULL), 0);
		ASSERT_EQ(cordon_call_error(c, "x", NULL), 0);
	}
	if (str_eq(how, "slow")) {
		usleep(30000);
		ASSERT_EQ(cordon_call_value(c, "1", NULL), 0);
	}
	if (str_eq(how, "now")) {
		ASSERT_EQ(cordon_call_value(c, "7", NULL), 0);
		return CORDON_ANSWER_PENDING; /* answered all the same */
	}
	return CORDON_ANSWER_VALUE;
}

TEST(handlers_may_misbehave)
{
	struct bench b;
	struct tool_calls_answer a;
	static const char *const names[] = { "silent", "bad", "large", "twice", "slow", "now" };
	bench_init(&b, tools_new(), NULL);
	for (size_t i = 0; i < 6; i++)
		tools_put(b.tools, (struct cordon_tool){ .name = names[i],
							 .fn = misbehave,
							 .arg = (void *)names[i],
							 .result_bytes = 10,
							 .timeout_ms = i == 4 ? 10 : 1000 });
	bench_open(&b, NULL, NULL, NULL);
	ASSERT_EQ(call(&b, 1, "silent", "{}", &a), 1);
	expect(&a, 1, TOOL_CALLS_FAILED, "the tool gave no answer");
	ASSERT_EQ(call(&b, 2, "bad", "{}", &a), 1);
	expect(&a, 2, TOOL_CALLS_FAILED, "the tool gave no answer");
	ASSERT_EQ(call(&b, 3, "large", "{}", &a), 1);
	expect(&a, 3, TOOL_CALLS_FAILED, "result too large (12 bytes, max 10)");
	ASSERT_EQ(call(&b, 4, "twice", "{}", &a), 1);
	expect(&a, 4, TOOL_CALLS_VALUE, "1");
	ASSERT_EQ(call(&b, 5, "slow", "{}", &a), 1);
	expect(&a, 5, TOOL_CALLS_TIMEOUT, "Tool 'slow' timed out after 0.01 seconds");
	ASSERT_EQ(call(&b, 6, "now", "{}", &a), 1);
	expect(&a, 6, TOOL_CALLS_VALUE, "7");
	bench_done(&b);
}

static void *answer_later(void *arg)
{
	struct cordon_call *c = arg;
	char text[40];

	usleep(20000);
	snprintf(text, sizeof(text), "\"%s %s\"", cordon_call_tool(c), cordon_call_session(c));
	ASSERT_EQ(cordon_call_value(c, text, NULL), 0);
	return NULL;
}

TEST(a_pending_call_is_answered_from_another_thread)
{
	struct bench b;
	struct seen seen = { 0 };
	struct tool_calls_answer a;
	pthread_t thread;
	bench_init(&b, tools_new(), NULL);
	tools_put(b.tools,
		  (struct cordon_tool){ .name = "slow", .fn = stay_pending, .arg = &seen });
	tools_put(b.tools, (struct cordon_tool)ADD);
	bench_open(&b, NULL, NULL, NULL);
	ASSERT_EQ(call(&b, 1, "slow", "{}", &a), 0);
	ASSERT_EQ(pthread_create(&thread, NULL, answer_later, seen.pending), 0);
	ASSERT_EQ(call(&b, 2, "add", "{\"a\":1,\"b\":1}", &a), 1); /* others go on */
	expect(&a, 2, TOOL_CALLS_VALUE, "2");
	ASSERT_EQ(wait_next(&b, 5000, &a), 1);
	expect(&a, 1, TOOL_CALLS_VALUE, "\"slow sess_1\"");
	ASSERT_EQ(tool_calls_next(b.calls, &a, NULL), 0);
	pthread_join(thread, NULL);
	bench_done(&b);
}

TEST(a_late_answer_reaches_nobody)
{
	struct bench b;
	struct seen seen = { 0 };
	struct tool_calls_answer a;
	bench_init(&b, tools_new(), NULL);
	tools_put(b.tools,
		  (struct cordon_tool){
			  .name = "slow", .fn = stay_pending, .arg = &seen, .timeout_ms = 20 });
	bench_open(&b, NULL, NULL, NULL);
	ASSERT_EQ(call(&b, 1, "slow", "{}", &a), 0);
	struct cordon_call *first = seen.pending;
	ASSERT_EQ(wait_next(&b, 5000, &a), 1);
	expect(&a, 1, TOOL_CALLS_TIMEOUT, "Tool 'slow' timed out after 0.02 seconds");
	ASSERT_EQ(call(&b, 2, "slow", "{}", &a), 0);
	struct cordon_call *second = seen.pending;
	ASSERT(first != second);
	ASSERT_EQ(cordon_call_value(first, "\"late\"", NULL), 0);
	ASSERT_EQ(cordon_call_value(second, "\"mine\"", NULL), 0);
	ASSERT_EQ(wait_next(&b, 5000, &a), 1);
	expect(&a, 2, TOOL_CALLS_VALUE, "\"mine\"");
	/* The end of the execution: the answer comes even after the tool calls is gone. */
	ASSERT_EQ(call(&b, 3, "slow", "{}", &a), 0);
	tool_calls_end(b.calls);
	ASSERT_EQ(wait_next(&b, 50, &a), 0);
	struct cordon_call *third = seen.pending;
	bench_done(&b);
	ASSERT_EQ(cordon_call_error(third, "too late", NULL), 0);
}

TEST(pending_calls_have_a_limit)
{
	struct bench b;
	static struct cordon_call *calls[300];
	struct seen seen = { 0 };
	struct tool_calls_answer a;
	int r = 0, count = 0;
	bench_init(&b, tools_new(), NULL);
	tools_put(b.tools,
		  (struct cordon_tool){ .name = "slow", .fn = stay_pending, .arg = &seen });
	bench_open(&b, NULL, NULL, NULL);
	for (uint64_t i = 1; i <= 300 && (r = call(&b, i, "slow", "{}", &a)) == 0; i++)
		calls[count++] = seen.pending;
	ASSERT_EQ(r, 1);
	expect(&a, 257, TOOL_CALLS_BUDGET, "Maximum tool calls at once (256) exceeded");
	/* Answered in the opposite order, each gets its own. */
	for (int i = count - 1; i >= 0; i--) {
		char text[20];
		snprintf(text, sizeof(text), "%d", i + 1);
		ASSERT_EQ(cordon_call_value(calls[i], text, NULL), 0);
		ASSERT_EQ(wait_next(&b, 1000, &a), 1);
		expect(&a, (uint64_t)i + 1, TOOL_CALLS_VALUE, text);
	}
	bench_done(&b);
}

TEST(a_hundred_thousand_calls_stay_flat)
{
	struct bench b;
	struct tool_calls_answer a;
	struct rusage before, after;
	bench_init(&b, tools_new(), NULL);
	tools_put(b.tools, (struct cordon_tool)ADD);
	bench_open(&b, NULL, NULL, NULL);
	for (uint64_t i = 1; i <= 1000; i++)
		ASSERT_EQ(call(&b, i, "add", "{\"a\":1,\"b\":1}", &a), 1);
	ASSERT_EQ(getrusage(RUSAGE_SELF, &before), 0);
	for (uint64_t i = 1001; i <= 100000; i++) {
		ASSERT_EQ(call(&b, i, "add", "{\"a\":1,\"b\":1}", &a), 1);
		ASSERT_EQ(a.call, i);
	}
	ASSERT_EQ(getrusage(RUSAGE_SELF, &after), 0);
	bench_done(&b);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what was freed for a while */
	ASSERT(after.ru_maxrss - before.ru_maxrss < 2000);
#endif
}

static void write_down(const char *line, size_t len, void *arg)
{
	struct buf *events = arg;
	cleanup_json json_t *j = NULL;
	ASSERT_EQ(json_parse(line, len, 0, &j, NULL), 0);
	ASSERT_EQ(buf_printf(events, "%s ", json_string_value(json_object_get(j, "event"))), 0);
	const char *error = json_string_value(json_object_get(j, "error"));
	if (error)
		ASSERT_EQ(buf_printf(events, "(%s) ", error), 0);
}

TEST(everything_is_audited)
{
	struct bench b;
	struct audit *audit = NULL;
	struct tool_calls_answer a;
	cleanup_buf struct buf events;
	buf_init(&events, 10000);
	struct audit_options opts = { .fn = write_down, .arg = &events };
	ASSERT_EQ(audit_open(&opts, &audit, NULL), 0);
	bench_init(&b, tools_new(), "{\"tools\":[\"add\",\"fail\"]}");
	tools_put(b.tools, (struct cordon_tool)ADD);
	tools_put(b.tools, (struct cordon_tool){ .name = "fail", .fn = fail_always });
	tools_put(b.tools, (struct cordon_tool){ .name = "secret", .fn = fail_always });
	bench_open(&b, audit, NULL, NULL);
	(void)call(&b, 1, "add", "{\"a\":1,\"b\":1}", &a);
	(void)call(&b, 2, "fail", "{}", &a);
	(void)call(&b, 3, "secret", "{}", &a);
	(void)call(&b, 4, "add", "{}", &a);
	(void)call(&b, 5, "zzz", "{}", &a);
	ASSERT_STREQ(events.data,
		     "tool_call tool_result tool_call tool_result (tool failed reading [path]) "
		     "capability.denied (secret: tool not allowed by security policy) "
		     "tool_refused (Missing arguments for tool 'add': 'a', 'b') "
		     "tool_refused (Unknown tool: zzz) ");
	bench_done(&b);
	audit_close(audit);
}

TEST(without_a_required_record_nothing_runs)
{
	struct bench b;
	struct seen seen = { 0 };
	struct audit *audit = NULL;
	struct tool_calls_answer a;
	char path[] = "/tmp/cordon-calls-XXXXXX";
	close(mkstemp(path));
	ASSERT_EQ(audit_open(&(struct audit_options){ .path = path }, &audit, NULL), 0);
	bench_init(&b, tools_new(), NULL);
	tools_put(b.tools,
		  (struct cordon_tool){
			  .name = "add", .args_json = AB, .fn = add_numbers, .arg = &seen });
	bench_open(&b, audit, NULL, NULL);
	ASSERT_EQ(unlink(path), 0);
	ASSERT_EQ(call(&b, 1, "add", "{\"a\":1,\"b\":1}", &a), 1); /* not required */
	ASSERT_EQ(seen.calls, 1);
	b.policy.audit_required = true;
	ASSERT(tool_calls_dispatch(b.calls, 2, "add", "{\"a\":1,\"b\":1}", 13, &a, NULL) < 0);
	ASSERT_EQ(seen.calls, 1);
	bench_done(&b);
	audit_close(audit);
}
