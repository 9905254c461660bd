/* unit/tools/test_approval.c - calls that wait for a decision. */
#include "unit/tools/bench.h"

static void remember(const struct cordon_approval *a, void *arg)
{
	struct seen *seen = arg;
	seen->approvals++;
	ASSERT_STREQ(a->kind, "tool");
	ASSERT_STREQ(a->what, "pay");
	ASSERT_STREQ(a->session, "sess_1");
	ASSERT(str_copy(seen->args, sizeof(seen->args), a->detail));
	ASSERT(str_copy(seen->approval_id, sizeof(seen->approval_id), a->id));
}

static struct bench b;
static struct seen seen;

static void setup(const char *policy, cordon_approval_fn fn)
{
	bench_init(&b, tools_new(), policy);
	tools_put(b.tools, (struct cordon_tool){ .name = "pay",
						 .args_json = "{\"a\":\"number\",\"b\":\"number\"}",
						 .fn = add_numbers,
						 .arg = &seen,
						 .approval = true,
						 .timeout_ms = 1000 });
	bench_open(&b, NULL, fn, &seen);
}

TEST(allow)
{
	struct tool_calls_answer a;
	setup(NULL, remember);
	ASSERT_EQ(call(&b, 1, "pay", "{\"a\":40,\"b\":2}", &a), 0);
	ASSERT_EQ(seen.approvals, 1);
	ASSERT_EQ(seen.calls, 0);
	ASSERT_EQ(strlen(seen.approval_id), 32);
	ASSERT_STREQ(seen.args, "{\"a\":40,\"b\":2}");
	ASSERT(tool_calls_is_waiting(b.calls));
	usleep(30000);
	ASSERT_EQ(tool_calls_next(b.calls, &a, NULL), 0);
	ASSERT_EQ(tool_calls_resolve(b.calls, seen.approval_id, true, NULL, NULL, NULL), 0);
	ASSERT_EQ(wait_next(&b, 1000, &a), 1);
	expect(&a, 1, TOOL_CALLS_VALUE, "42");
	ASSERT_EQ(seen.calls, 1);
	ASSERT(!tool_calls_is_waiting(b.calls));
	ASSERT(tool_calls_waited_ns(b.calls) >= 25000000);
	uint64_t waited = tool_calls_waited_ns(b.calls);
	usleep(5000);
	ASSERT(tool_calls_waited_ns(b.calls) == waited);
	bench_done(&b);
}

TEST(deny)
{
	struct tool_calls_answer a;
	setup(NULL, remember);
	ASSERT_EQ(call(&b, 1, "pay", "{\"a\":1,\"b\":2}", &a), 0);
	ASSERT_EQ(tool_calls_resolve(b.calls, seen.approval_id, false, NULL, "too much", NULL), 0);
	ASSERT_EQ(wait_next(&b, 1000, &a), 1);
	expect(&a, 1, TOOL_CALLS_DENIED, "Tool 'pay' was denied: too much");
	ASSERT_EQ(call(&b, 2, "pay", "{\"a\":1,\"b\":2}", &a), 0);
	ASSERT_EQ(tool_calls_resolve(b.calls, seen.approval_id, false, "\"ignored\"", NULL, NULL),
		  0);
	ASSERT_EQ(wait_next(&b, 1000, &a), 1);
	expect(&a, 2, TOOL_CALLS_DENIED, "Tool 'pay' was denied");
	ASSERT_EQ(seen.calls, 0);
	bench_done(&b);
}

TEST(replace)
{
	struct tool_calls_answer a;
	setup(NULL, remember);
	ASSERT_EQ(call(&b, 1, "pay", "{\"a\":1,\"b\":2}", &a), 0);
	ASSERT_EQ(tool_calls_resolve(b.calls, seen.approval_id, true, "{bad", NULL, NULL),
		  -CORDON_INVALID);
	ASSERT_EQ(tool_calls_resolve(b.calls, seen.approval_id, true, "{\"x\":1}", NULL, NULL), 0);
	ASSERT_EQ(wait_next(&b, 1000, &a), 1);
	expect(&a, 1, TOOL_CALLS_VALUE, "{\"x\":1}");
	ASSERT_EQ(seen.calls, 0);
	bench_done(&b);
}

TEST(ids_are_good_once)
{
	struct tool_calls_answer a;
	setup(NULL, remember);
	ASSERT_EQ(tool_calls_resolve(b.calls, "", true, NULL, NULL, NULL), -CORDON_NOT_FOUND);
	ASSERT_EQ(call(&b, 1, "pay", "{\"a\":1,\"b\":2}", &a), 0);
	ASSERT_EQ(tool_calls_resolve(b.calls, "0", true, NULL, NULL, NULL), -CORDON_NOT_FOUND);
	ASSERT_EQ(tool_calls_resolve(b.calls, "", true, NULL, NULL, NULL), -CORDON_NOT_FOUND);
	ASSERT_EQ(tool_calls_resolve(b.calls, seen.approval_id, false, NULL, NULL, NULL), 0);
	ASSERT_EQ(tool_calls_resolve(b.calls, seen.approval_id, true, NULL, NULL, NULL),
		  -CORDON_NOT_FOUND);
	ASSERT_EQ(wait_next(&b, 1000, &a), 1);
	ASSERT_EQ(a.cause, TOOL_CALLS_DENIED);
	ASSERT_EQ(tool_calls_resolve(b.calls, seen.approval_id, true, NULL, NULL, NULL),
		  -CORDON_NOT_FOUND);
	ASSERT_EQ(call(&b, 2, "pay", "{\"a\":1,\"b\":2}", &a), 0);
	tool_calls_end(b.calls);
	ASSERT(!tool_calls_is_waiting(b.calls));
	ASSERT_EQ(tool_calls_resolve(b.calls, seen.approval_id, true, NULL, NULL, NULL),
		  -CORDON_NOT_FOUND);
	ASSERT_EQ(seen.calls, 0);
	bench_done(&b);
}

TEST(nobody_to_ask_is_a_denial)
{
	struct tool_calls_answer a;
	setup(NULL, NULL);
	ASSERT_EQ(call(&b, 1, "pay", "{\"a\":1,\"b\":2}", &a), 1);
	expect(&a, 1, TOOL_CALLS_DENIED,
	       "Tool 'pay' needs approval, and nobody is there to give it");
	bench_done(&b);
}

TEST(bad_arguments_are_not_asked_about)
{
	struct tool_calls_answer a;
	setup(NULL, remember);
	ASSERT_EQ(call(&b, 1, "pay", "{\"a\":1}", &a), 1);
	ASSERT_EQ(a.cause, TOOL_CALLS_BAD_ARGS);
	ASSERT_EQ(seen.approvals, 0);
	bench_done(&b);
}

TEST(waiting_has_an_end)
{
	struct tool_calls_answer a;
	setup("{\"approval_timeout_ms\":20}", remember);
	ASSERT_EQ(call(&b, 1, "pay", "{\"a\":1,\"b\":2}", &a), 0);
	ASSERT_EQ(wait_next(&b, 5000, &a), 1);
	expect(&a, 1, TOOL_CALLS_TIMEOUT, "Approval of tool 'pay' timed out");
	ASSERT_EQ(tool_calls_resolve(b.calls, seen.approval_id, true, NULL, NULL, NULL),
		  -CORDON_NOT_FOUND);
	ASSERT_EQ(seen.calls, 0);
	bench_done(&b);
}

static void allow_at_once(const struct cordon_approval *a, void *arg)
{
	(void)arg;
	ASSERT_EQ(tool_calls_resolve(b.calls, a->id, true, NULL, NULL, NULL), 0);
}

TEST(deciding_on_the_spot)
{
	struct tool_calls_answer a;
	setup(NULL, allow_at_once);
	ASSERT_EQ(call(&b, 1, "pay", "{\"a\":1,\"b\":2}", &a), 1);
	expect(&a, 1, TOOL_CALLS_VALUE, "3");
	ASSERT(!tool_calls_is_waiting(b.calls));
	bench_done(&b);
}

static void *allow_later(void *arg)
{
	usleep(10000);
	ASSERT_EQ(tool_calls_resolve(b.calls, arg, true, NULL, NULL, NULL), 0);
	return NULL;
}

TEST(from_another_thread)
{
	struct tool_calls_answer a;
	pthread_t thread;
	setup(NULL, remember);
	ASSERT_EQ(call(&b, 1, "pay", "{\"a\":1,\"b\":2}", &a), 0);
	ASSERT_EQ(pthread_create(&thread, NULL, allow_later, seen.approval_id), 0);
	ASSERT_EQ(wait_next(&b, 5000, &a), 1);
	expect(&a, 1, TOOL_CALLS_VALUE, "3");
	pthread_join(thread, NULL);
	bench_done(&b);
}
