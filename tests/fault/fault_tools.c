/* fault/fault_tools.c - tool calls when memory runs out. */
#include <poll.h>

#include "harness/fault.h"
#include "tools/schema.h"
#include "tools/tool_calls.h"

static enum cordon_answer echo(struct cordon_call *c, void *arg)
{
	(void)arg;
	(void)cordon_call_value(c, cordon_call_args(c), NULL);
	return CORDON_ANSWER_VALUE;
}

static int register_tools(struct cordon_tools *t, struct cordon_error **e)
{
	struct cordon_tool tool = { .name = "echo",
				    .description = "d",
				    .category = "c",
				    .args_json = "{\"a\":\"number\",\"b\":{\"type\":\"string\","
						 "\"required\":false}}",
				    .fn = echo,
				    .python_package = "{\"a.py\":\"x\"}" };
	int r = cordon_tools_add(t, &tool, e);
	return r < 0 ? r
		     : cordon_tools_add_json(t,
					     "[{\"name\":\"cmd\",\"command\":[\"true\"],"
					     "\"env\":{\"A\":\"b\"},\"env_pass\":[\"X\"]}]",
					     e);
}

TEST(registering)
{
	FAULT_LOOP
	{
		struct cordon_error *e = NULL;
		struct cordon_tools *t = NULL;
		int r = cordon_tools_new(&t, &e);
		if (r >= 0)
			r = register_tools(t, &e);
		char *text = r >= 0 ? cordon_tools_json(t) : NULL;
		ASSERT(r < 0 || text || fault_was_hit());
		free(text);
		ASSERT((r < 0) <= fault_was_hit());
		cordon_error_free(e);
		cordon_tools_unref(t);
	}
}

static void dispatch(struct tool_calls *d, const char *tool, const char *args)
{
	struct cordon_error *e = NULL;
	struct tool_calls_answer a;
	int r = tool_calls_dispatch(d, 1, tool, args, strlen(args), &a, &e);

	ASSERT(r >= 0 || fault_was_hit());
	ASSERT((r < 0) == (e != NULL));
	cordon_error_free(e);
	for (int i = 0; r == 0 && i < 100; i++) {
		struct pollfd p = { .fd = tool_calls_fd(d), .events = POLLIN };
		(void)poll(&p, 1, 100);
		r = tool_calls_next(d, &a, NULL);
	}
}

TEST(calling)
{
	struct cordon_tools *t = NULL;
	struct policy policy;
	ASSERT_EQ(cordon_tools_new(&t, NULL), 0);
	ASSERT_EQ(register_tools(t, NULL), 0);
	ASSERT_EQ(policy_init_level(&policy, LEVEL_STANDARD, NULL), 0);
	FAULT_LOOP
	{
		struct tool_calls_options opts = { .tools = t, .policy = &policy, .session = "s" };
		struct cordon_error *e = NULL;
		struct tool_calls *d = NULL;
		int r = tool_calls_new(&opts, &d, &e);
		ASSERT(r >= 0 || fault_was_hit());
		cordon_error_free(e);
		if (r >= 0) {
			tool_calls_begin(d, UINT64_MAX);
			dispatch(d, "echo", "{\"a\":1}");
			dispatch(d, "echo", "{\"a\":\"x\"}");
			dispatch(d, "nope", "{}");
			dispatch(d, "extensions", "{\"args\":[\"list\",\"--json\"]}");
			dispatch(d, "cmd", "{}");
		}
		tool_calls_free(d);
	}
	cordon_tools_unref(t);
	policy_done(&policy);
}

TEST(sanitising)
{
	FAULT_LOOP
	{
		char *text = cordon_sanitize("cannot open /root/x on 10.0.0.1 \xff", 20);
		ASSERT_EQ(text == NULL, fault_was_hit());
		free(text);
	}
}
