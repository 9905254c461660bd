/* tools/desk.h - where a session's tool calls are handled: checked, counted, run, answered.
 *
 * How a session embeds it. One thread; beside the wire (wire/wire.h) it polls desk_fd() for POLLIN:
 *
 *   desk_begin(d, tool_calls);
 *   on WIRE_TOOL_CALL m:    r = desk_dispatch(d, m.call, m.tool.data, m.args.data, m.args.len, &a,
 * &e) on POLLIN of desk_fd(): while ((r = desk_next(d, &a, &e)) > 0) the same as below r == 1:  a
 * is the answer: a.is_error ? wire_send_tool_error(w, id, a.call, a.text, ...) :
 * wire_send_tool_value(w, id, a.call, a.text, a.len, ...) r == 0:  it is pending (a slow handler, a
 * command, an approval); desk_next() will have it r < 0:   Cordon itself failed (no memory; the
 * audit log, where it is required): end the execution desk_end(d): whatever still runs is killed or
 * abandoned; late answers go nowhere
 *
 * The desk keeps its own deadlines (a timerfd inside desk_fd), so the session's poll needs none.
 * While an approval is pending the session's clock stands still: its deadline is that of the
 * execution plus desk_waited_ns(), up to approval_total_ms.
 * A handler that blocks blocks its session (and nobody else): it should answer "pending". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/audit.h"
#include "base/error.h"
#include "cordon/session.h"
#include "policy/policy.h"

struct desk;

/* Why a call was answered as it was. */
enum desk_cause {
	DESK_VALUE,    /* with a value */
	DESK_FAILED,   /* the tool failed */
	DESK_UNKNOWN,  /* there is no such tool */
	DESK_DENIED,   /* the policy does not allow it, or somebody said no */
	DESK_BAD_ARGS, /* the arguments do not fit */
	DESK_BUDGET,   /* too many calls */
	DESK_TIMEOUT,  /* of the tool, or of its approval */
};

/* text is owned by the desk and valid until its next function is called. */
struct desk_answer {
	uint64_t call;
	enum desk_cause cause;
	bool is_error;    /* text is a message; otherwise it is one JSON value */
	const char *tool; /* as registered; "" when it is not */
	const char *text;
	size_t len;
};

struct desk_options {
	struct cordon_tools *tools;  /* NULL: none; a reference is taken */
	const struct policy *policy; /* outlives the desk */
	const char *session;         /* its id; copied */
	struct audit *audit;         /* NULL: none; outlives the desk */
	cordon_approval_fn approval; /* NULL: what needs approval is denied */
	void *approval_arg;
};

int desk_new(const struct desk_options *opts, struct desk **ret, struct cordon_error **reterr);
struct desk *desk_free(struct desk *d);

int desk_fd(const struct desk *d);
/* tool_calls: this execution's budget; UINT64_MAX: none. */
void desk_begin(struct desk *d, uint64_t tool_calls);
int desk_dispatch(struct desk *d, uint64_t call, const char *tool, const char *args,
		  size_t args_len, struct desk_answer *ret, struct cordon_error **reterr);
int desk_next(struct desk *d, struct desk_answer *ret, struct cordon_error **reterr);
void desk_end(struct desk *d);

uint64_t desk_get_calls(const struct desk *d); /* of this execution, refused ones too */
bool desk_is_waiting(const struct desk *d);    /* for an approval */
uint64_t desk_waited_ns(const struct desk *d); /* for approvals, in this execution */

/* From any thread, while the desk lives. -CORDON_NOT_FOUND: no such approval is pending. */
int desk_resolve(struct desk *d, const char *approval_id, bool allow, const char *value_json,
		 const char *reason, struct cordon_error **reterr);

/* The names of all tools, whether this session may call them or not, and `extensions`: what a
 * shell has as commands. Names that cannot be one ("." and "..") are left out. */
int desk_names(const struct desk *d, struct strlist *ret);
/* What the policy, or somebody who was asked, refused in this execution: an array as in
 * docs/result.md, a new reference; NULL: nothing. */
json_t *desk_take_denials(struct desk *d);
/* The most bytes that the arguments of any call of this session may have; 0: there are no tools. */
uint64_t desk_argument_max(const struct desk *d);

/* The tools that this session may call, as the array of docs/wire.md's welcome. To be freed. */
char *desk_describe(const struct desk *d);

DEFINE_FREEP(struct desk *, desk_free)
#define cleanup_desk CLEANUP(desk_freep)
