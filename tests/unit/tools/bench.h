/* unit/tools/bench.h - tool calls with a few tools, for tests. */
#pragma once

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "harness/test.h"
#include "tools/tool_calls.h"

struct bench {
	struct policy policy;
	struct cordon_tools *tools;
	struct tool_calls *calls;
};

/* What handlers saw and whom they have to answer. */
struct seen {
	int calls;
	char args[200];
	struct cordon_call *pending;
	char approval_id[64];
	int approvals;
};

static inline enum cordon_answer add_numbers(struct cordon_call *c, void *arg)
{
	struct seen *seen = arg;
	cleanup_json json_t *args = NULL;
	char text[64];

	if (seen)
		seen->calls++;
	ASSERT_EQ(json_parse(cordon_call_args(c), strlen(cordon_call_args(c)), 0, &args, NULL), 0);
	snprintf(text, sizeof(text), "%.17g",
		 json_number_value(json_object_get(args, "a")) +
			 json_number_value(json_object_get(args, "b")));
	ASSERT_EQ(cordon_call_value(c, text, NULL), 0);
	return CORDON_ANSWER_VALUE;
}

static inline enum cordon_answer fail_always(struct cordon_call *c, void *arg)
{
	(void)arg;
	ASSERT_EQ(cordon_call_error(c, "tool failed reading /srv/secret/x", NULL), 0);
	return CORDON_ANSWER_ERROR;
}

static inline enum cordon_answer stay_pending(struct cordon_call *c, void *arg)
{
	struct seen *seen = arg;

	seen->calls++;
	seen->pending = c;
	return CORDON_ANSWER_PENDING;
}

static inline void bench_init(struct bench *b, struct cordon_tools *tools, const char *policy_json)
{
	*b = (struct bench){ .tools = tools };
	ASSERT_EQ(policy_init_level(&b->policy, LEVEL_STANDARD, NULL), 0);
	if (policy_json) {
		cleanup_json json_t *j = NULL;
		ASSERT_EQ(json_parse(policy_json, strlen(policy_json), 0, &j, NULL), 0);
		ASSERT_EQ(policy_apply_json(&b->policy, j, NULL), 0);
	}
}

/* The policy must not move once the tool calls point to it. */
static inline void bench_open(struct bench *b, struct audit *audit, cordon_approval_fn approval,
			      void *arg)
{
	struct tool_calls_options opts = { .tools = b->tools,
					   .policy = &b->policy,
					   .session = "sess_1",
					   .audit = audit,
					   .approval = approval,
					   .approval_arg = arg };
	ASSERT_EQ(tool_calls_new(&opts, &b->calls, NULL), 0);
	tool_calls_begin(b->calls, UINT64_MAX);
}

static inline void bench_done(struct bench *b)
{
	tool_calls_free(b->calls);
	cordon_tools_unref(b->tools);
	policy_done(&b->policy);
}

static inline struct cordon_tools *tools_new(void)
{
	struct cordon_tools *t = NULL;
	ASSERT_EQ(cordon_tools_new(&t, NULL), 0);
	return t;
}

static inline void tools_put(struct cordon_tools *t, struct cordon_tool tool)
{
	cleanup_error struct cordon_error *e = NULL;
	if (cordon_tools_add(t, &tool, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
}

static inline int call(struct bench *b, uint64_t number, const char *tool, const char *args,
		       struct tool_calls_answer *ret)
{
	cleanup_error struct cordon_error *e = NULL;
	int r = tool_calls_dispatch(b->calls, number, tool, args, strlen(args), ret, &e);
	if (r < 0)
		test_fail(__FILE__, __LINE__, "dispatch: %s", cordon_error_message(e));
	return r;
}

/* Waits for the tool calls as a session would. */
static inline int wait_next(struct bench *b, int ms, struct tool_calls_answer *ret)
{
	deadline_ns end = deadline_after_ms((uint64_t)ms);
	int r;

	while ((r = tool_calls_next(b->calls, ret, NULL)) == 0 && !deadline_is_over(end)) {
		struct pollfd p = { .fd = tool_calls_fd(b->calls), .events = POLLIN };
		(void)poll(&p, 1, deadline_poll_ms(end));
	}
	return r;
}

static inline void expect(const struct tool_calls_answer *a, uint64_t number,
			  enum tool_calls_cause cause, const char *text)
{
	ASSERT_STREQ(a->text, text);
	ASSERT_EQ(a->call, number);
	ASSERT_EQ(a->cause, cause);
	ASSERT_EQ(a->is_error, cause != TOOL_CALLS_VALUE);
	ASSERT_EQ(a->len, strlen(text));
}
