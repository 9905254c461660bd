/* tools/tool_calls.h - handles a session's tool calls: checks, counts, runs and answers them.
 *
 * One thread uses it. Beside the wire (wire/wire.h), that thread polls tool_calls_fd() for POLLIN.
 *
 * - tool_calls_begin() starts an execution with its budget of calls.
 * - When the wire has a WIRE_TOOL_CALL: tool_calls_dispatch().
 * - When tool_calls_fd() is readable: tool_calls_next(), until it returns 0.
 * - tool_calls_end() kills or abandons what still runs. Late answers are dropped.
 *
 * Dispatch and next return:
 * - 1: there is an answer. Send it with wire_send_tool_value() or wire_send_tool_error().
 * - 0: the call is pending (a slow handler, a command, an approval). tool_calls_next() will
 *   return its answer.
 * - negative: Cordon itself failed (no memory, or a required audit log). End the execution.
 *
 * Deadlines are kept here (a timerfd behind tool_calls_fd()), so the session's poll needs none.
 * While an approval is pending, the clock of the execution stops: its deadline moves by
 * tool_calls_waited_ns(), at most by approval_total_ms. A handler that blocks stops its own
 * session; it should answer "pending" instead. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/audit.h"
#include "base/error.h"
#include "cordon/session.h"
#include "policy/policy.h"

struct tool_calls;

/* Why a call got its answer. */
enum tool_calls_cause {
	TOOL_CALLS_VALUE,    /* the tool returned a value */
	TOOL_CALLS_FAILED,   /* the tool failed */
	TOOL_CALLS_UNKNOWN,  /* there is no such tool */
	TOOL_CALLS_DENIED,   /* the policy does not allow it, or its approval was denied */
	TOOL_CALLS_BAD_ARGS, /* the arguments do not fit the schema */
	TOOL_CALLS_BUDGET,   /* the limit on calls was reached */
	TOOL_CALLS_TIMEOUT,  /* the tool or its approval took too long */
};

/* The dispatcher owns text, which is valid until the next call of one of its functions. */
struct tool_calls_answer {
	uint64_t call;
	enum tool_calls_cause cause;
	bool is_error;    /* true: text is a message; false: a JSON value */
	const char *tool; /* name as registered; "": not registered */
	const char *text;
	size_t len;
};

struct tool_calls_options {
	struct cordon_tools *tools;  /* NULL: none; a reference is taken */
	const struct policy *policy; /* must outlive the dispatcher */
	const char *session;         /* its id; copied */
	struct audit *audit;         /* NULL: none; must outlive the dispatcher */
	cordon_approval_fn approval; /* NULL: tools that need approval are denied */
	void *approval_arg;
};

int tool_calls_new(const struct tool_calls_options *opts, struct tool_calls **ret,
		   struct cordon_error **reterr);
struct tool_calls *tool_calls_free(struct tool_calls *t);

int tool_calls_fd(const struct tool_calls *t);
/* tool_calls: budget of this execution; UINT64_MAX: unlimited. */
void tool_calls_begin(struct tool_calls *t, uint64_t tool_calls);
int tool_calls_dispatch(struct tool_calls *t, uint64_t call, const char *tool, const char *args,
			size_t args_len, struct tool_calls_answer *ret,
			struct cordon_error **reterr);
int tool_calls_next(struct tool_calls *t, struct tool_calls_answer *ret,
		    struct cordon_error **reterr);
void tool_calls_end(struct tool_calls *t);

uint64_t
tool_calls_get_calls(const struct tool_calls *t); /* in this execution, including refused ones */
bool tool_calls_is_waiting(const struct tool_calls *t); /* an approval is pending */
uint64_t tool_calls_waited_ns(
	const struct tool_calls *t); /* time spent waiting for approvals in this execution */

/* Any thread may call it while the dispatcher exists. -CORDON_NOT_FOUND: no such approval is
 * pending. */
int tool_calls_resolve(struct tool_calls *t, const char *approval_id, bool allow,
		       const char *value_json, const char *reason, struct cordon_error **reterr);

/* All tool names, whether this session may call them or not, and `extensions`: the commands of a
 * shell. "." and ".." are left out. */
int tool_calls_names(const struct tool_calls *t, struct strlist *ret);
/* Denials of this execution, by the policy or by an approval: an array as in docs/result.md, a new
 * reference. NULL: none. */
json_t *tool_calls_take_denials(struct tool_calls *t);
/* The most bytes that the arguments of a call may have in this session; 0: there are no tools. */
uint64_t tool_calls_argument_max(const struct tool_calls *t);

/* The tools that this session may call, as the array in the welcome (docs/wire.md). The caller
 * frees it. */
char *tool_calls_describe(const struct tool_calls *t);

DEFINE_FREEP(struct tool_calls *, tool_calls_free)
#define cleanup_tool_calls CLEANUP(tool_calls_freep)
