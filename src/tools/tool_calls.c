/* tools/tool_calls.c - see tool_calls.h. */
#include "tools/tool_calls.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/os.h"
#include "base/random.h"
#include "base/str.h"
#include "tools/budget.h"
#include "tools/call.h"
#include "tools/command.h"
#include "tools/denial.h"
#include "tools/extensions.h"
#include "tools/registry.h"
#include "tools/schema.h"
#include "tools/tool_audit.h"
#include "wire/scan.h"

/* How many calls may be pending at once, and how many bytes of arguments and output they may keep
 * in the host. */
enum { PENDING_MAX = 256, HELD_MAX = 64 << 20 };

struct tool_calls {
	struct cordon_tools *tools;
	const struct policy *policy;
	char *session;
	struct audit *audit;
	cordon_approval_fn approval;
	void *approval_arg;
	struct call_slot *slot;
	int watch_fd, timer_fd;
	deadline_ns armed; /* when the timer fires; 0: it is off */
	/* Pending calls; linked under slot->lock, for tool_calls_resolve(). */
	struct cordon_call *first, *last;
	size_t pending, held; /* number of calls, and bytes that they keep */
	struct budget budget;
	size_t waiting; /* for an approval */
	uint64_t waited_ns, wait_start_ns;
	json_t *denials; /* of this execution; NULL: none */
	/* Owns the text of the last answer. */
	struct cordon_call *answered;
	char *text;
};

static int open_descriptors(struct tool_calls *t)
{
	t->watch_fd = os_watch_open();
	t->timer_fd = os_timer_open();
	int r = t->watch_fd < 0 ? t->watch_fd : t->timer_fd < 0 ? t->timer_fd : 0;
	if (r == 0)
		r = os_watch_add(t->watch_fd, t->slot->wake_fd, NULL);
	return r < 0 ? r : os_watch_add(t->watch_fd, t->timer_fd, NULL);
}

int tool_calls_new(const struct tool_calls_options *opts, struct tool_calls **ret,
		   struct cordon_error **reterr)
{
	cleanup_tool_calls struct tool_calls *t = mem_alloc(sizeof(*t));

	if (!t)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	t->watch_fd = t->timer_fd = -1;
	t->slot = call_slot_new();
	t->session = str_dup(opts->session);
	if (!t->session)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (!t->slot ||
	    (opts->tools && open_descriptors(t) < 0)) /* without tools, all calls are refused */
		return err_errno(reterr, errno, "make the descriptors for tool calls");
	t->tools = cordon_tools_ref(opts->tools);
	t->policy = opts->policy;
	t->audit = opts->audit;
	t->approval = opts->approval;
	t->approval_arg = opts->approval_arg;
	*ret = TAKE_PTR(t);
	return 0;
}

static void forget_answer(struct tool_calls *t)
{
	t->answered = call_unref(t->answered);
	free_ptrp(&t->text);
}

struct tool_calls *tool_calls_free(struct tool_calls *t)
{
	if (!t)
		return NULL;
	tool_calls_end(t);
	forget_answer(t);
	close_fdp(&t->watch_fd);
	close_fdp(&t->timer_fd);
	call_slot_unref(t->slot);
	cordon_tools_unref(t->tools);
	free(t->session);
	budget_done(&t->budget);
	json_decref(t->denials);
	free(t);
	return NULL;
}

int tool_calls_fd(const struct tool_calls *t)
{
	return t->watch_fd;
}

uint64_t tool_calls_get_calls(const struct tool_calls *t)
{
	return t->budget.made;
}

bool tool_calls_is_waiting(const struct tool_calls *t)
{
	return t->waiting > 0;
}

uint64_t tool_calls_waited_ns(const struct tool_calls *t)
{
	return t->waited_ns + (t->waiting > 0 ? clock_now_ns() - t->wait_start_ns : 0);
}

void tool_calls_begin(struct tool_calls *t, uint64_t tool_calls)
{
	tool_calls_end(t);
	json_decref(TAKE_PTR(t->denials));
	budget_begin(&t->budget, tool_calls);
	t->waited_ns = 0;
}

/* If the policy requires the audit log, a call without its record must not run. */
static int heed_audit(const struct tool_calls *t, int r, struct cordon_error **reterr)
{
	if (r >= 0)
		return 0;
	if (t->policy->audit_required)
		return err_wrap(reterr, r, "the audit log is required");
	if (reterr)
		*reterr = cordon_error_free(*reterr);
	return 0;
}

static void arm_timer(struct tool_calls *t)
{
	deadline_ns soonest = 0;

	for (const struct cordon_call *c = t->first; c; c = c->next)
		if (c->deadline && (soonest == 0 || c->deadline < soonest))
			soonest = c->deadline;
	if (soonest == t->armed)
		return;
	t->armed = soonest;
	(void)os_timer_set(t->timer_fd, soonest);
}

/* Updates the total of bytes that pending calls keep. */
static void count_held(struct tool_calls *t, struct cordon_call *c, size_t held)
{
	t->held = t->held - c->held + held;
	c->held = held;
}

static void link_call(struct tool_calls *t, struct cordon_call *c)
{
	count_held(t, c, c->args_len);
	pthread_mutex_lock(&t->slot->lock);
	c->prev = t->last;
	*(t->last ? &t->last->next : &t->first) = c;
	t->last = c;
	t->pending++;
	pthread_mutex_unlock(&t->slot->lock);
	arm_timer(t);
}

static void unlink_call(struct tool_calls *t, struct cordon_call *c)
{
	count_held(t, c, 0);
	pthread_mutex_lock(&t->slot->lock);
	*(c->prev ? &c->prev->next : &t->first) = c->next;
	*(c->next ? &c->next->prev : &t->last) = c->prev;
	c->prev = c->next = NULL;
	t->pending--;
	pthread_mutex_unlock(&t->slot->lock);
	arm_timer(t);
}

static void stop_waiting(struct tool_calls *t)
{
	if (--t->waiting == 0)
		t->waited_ns += clock_now_ns() - t->wait_start_ns;
}

void tool_calls_end(struct tool_calls *t)
{
	static const char why[] = "abandoned: the execution ended";

	while (t->first) {
		struct cordon_call *c = t->first;
		unlink_call(t, c);
		if (c->stage == CALL_APPROVAL)
			stop_waiting(t);
		call_abandon(c);
		c->run = command_run_free(c->run);
		(void)tool_audit_result(t->audit, c, true, why, sizeof(why) - 1, NULL);
		call_unref(c);
	}
}

/* Answers without making a call. Takes ownership of message. */
static int refuse(struct tool_calls *t, uint64_t call, const char *tool,
		  enum tool_calls_cause cause, char *message, struct tool_calls_answer *ret,
		  struct cordon_error **reterr)
{
	static const char *const names[] = { [TOOL_CALLS_UNKNOWN] = "unknown",
					     [TOOL_CALLS_DENIED] = "tools",
					     [TOOL_CALLS_BAD_ARGS] = "arguments",
					     [TOOL_CALLS_BUDGET] = "budget" };
	if (!message)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	t->text = message;
	const char *why = names[cause];
	const struct tool *known = registry_find(t->tools, tool);
	if (cause == TOOL_CALLS_DENIED && known)
		why = registry_denied_by(t->policy, known) ?: "approval";
	if (cause == TOOL_CALLS_DENIED)
		denial_add(&t->denials, tool, why);
	int r = tool_audit_refusal(t->audit, t->session, tool, why, message, reterr);
	r = heed_audit(t, r, reterr);
	if (r < 0)
		return r;
	*ret = (struct tool_calls_answer){ .call = call,
					   .cause = cause,
					   .is_error = true,
					   .tool = "",
					   .text = message,
					   .len = strlen(message) };
	return 1;
}

/* Takes ownership of the call, which is not linked, and is answered or never will be. */
static int finish(struct tool_calls *t, struct cordon_call *c, struct tool_calls_answer *ret,
		  struct cordon_error **reterr)
{
	static const char silence[] = "the tool gave no answer";

	t->answered = c;
	pthread_mutex_lock(&c->slot->lock);
	c->is_abandoned = true;
	bool is_error = !c->is_answered || c->is_error;
	const char *text = c->is_answered ? c->answer : silence;
	size_t len = c->is_answered ? c->answer_len : sizeof(silence) - 1;
	pthread_mutex_unlock(&c->slot->lock);
	if (is_error) {
		t->text = cordon_sanitize(text, 0);
		if (!t->text)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
		text = t->text;
		len = strlen(text);
	}
	int r = tool_audit_result(t->audit, c, is_error, text, len, reterr);
	r = heed_audit(t, r, reterr);
	if (r < 0)
		return r;
	if (is_error && c->cause == TOOL_CALLS_VALUE)
		c->cause = TOOL_CALLS_FAILED;
	*ret = (struct tool_calls_answer){ .call = c->number,
					   .cause = (enum tool_calls_cause)c->cause,
					   .is_error = is_error,
					   .tool = c->tool->name,
					   .text = text,
					   .len = len };
	return 1;
}

/* Runs a call that is allowed. 1: *ret is its answer, 0: it is pending. Takes ownership of the
 * call. */
static int start(struct tool_calls *t, struct cordon_call *c, struct tool_calls_answer *ret,
		 struct cordon_error **reterr)
{
	bool is_done = false;
	int r = tool_audit_call(t->audit, c, reterr);

	r = heed_audit(t, r, reterr);
	c->stage = CALL_RUNNING;
	c->deadline = deadline_after_ms(c->tool->timeout_ms);
	if (r >= 0 && c->tool->host) {
		r = call_start_command(c, t->watch_fd, reterr);
		is_done = !c->run;
	} else if (r >= 0) {
		is_done = call_run(c);
		if (is_done && deadline_is_over(c->deadline)) {
			/* A handler that answered after the deadline has timed out all the same. */
			free_ptrp(&c->answer);
			c->is_answered = false;
			call_time_out(c);
			c->cause = TOOL_CALLS_TIMEOUT;
		}
	}
	if (r < 0) {
		call_abandon(c);
		call_unref(c);
		return r;
	}
	if (is_done)
		return finish(t, c, ret, reterr);
	link_call(t, c);
	return 0;
}

/* The approval was decided. The call is not linked. */
static int take_decision(struct tool_calls *t, struct cordon_call *c, struct tool_calls_answer *ret,
			 struct cordon_error **reterr)
{
	bool is_replaced = c->is_answered && !c->is_error;
	const char *decision = !c->is_allowed ? "deny" : is_replaced ? "replace" : "allow";
	int r = tool_audit_decision(t->audit, c, decision, c->reason, reterr);

	r = heed_audit(t, r, reterr);
	if (r < 0) {
		call_abandon(c);
		call_unref(c);
		return r;
	}
	if (c->is_allowed && !is_replaced)
		return start(t, c, ret, reterr);
	if (!c->is_allowed) {
		c->cause = TOOL_CALLS_DENIED;
		denial_add(&t->denials, c->tool->name, "approval");
		call_settle(c, true,
			    str_printf("Tool '%s' was denied%s%s", c->tool->name,
				       c->reason ? ": " : "", c->reason ? c->reason : ""));
	}
	return finish(t, c, ret, reterr);
}

static bool is_decided(struct cordon_call *c)
{
	pthread_mutex_lock(&c->slot->lock);
	bool is = c->is_resolved;
	pthread_mutex_unlock(&c->slot->lock);
	return is;
}

/* Suspends the call and asks for approval. Takes ownership of the call. */
static int ask(struct tool_calls *t, struct cordon_call *c, struct tool_calls_answer *ret,
	       struct cordon_error **reterr)
{
	char id[CALL_ID_HEX + 1];
	int r = tool_audit_approval(t->audit, c, reterr);

	r = heed_audit(t, r, reterr);
	if (r < 0) {
		call_unref(c);
		return r;
	}
	random_hex(id, CALL_ID_HEX);
	memcpy(c->approval_id, id, sizeof(id));
	c->stage = CALL_APPROVAL;
	c->deadline = t->policy->approval_timeout_ms == POLICY_UNLIMITED
			      ? 0
			      : deadline_after_ms(t->policy->approval_timeout_ms);
	if (t->waiting++ == 0)
		t->wait_start_ns = clock_now_ns();
	link_call(t, c);
	struct cordon_approval approval = { .id = id,
					    .session = c->session,
					    .kind = "tool",
					    .what = c->tool->name,
					    .detail = c->args };
	t->approval(&approval, t->approval_arg);
	if (!is_decided(c))
		return 0;
	stop_waiting(t);
	unlink_call(t, c);
	return take_decision(t, c, ret, reterr);
}

/* The command `extensions`. Every guest has it, unless a tool has that name. */
static int answer_extensions(struct tool_calls *t, uint64_t call, const char *args, size_t len,
			     struct tool_calls_answer *ret, struct cordon_error **reterr)
{
	cleanup_json json_t *parsed = NULL;
	int r = json_parse(args, len, 0, &parsed, reterr);

	if (r < 0)
		return r;
	cleanup_json json_t *reply =
		extensions_run(t->tools, t->policy, json_object_get(parsed, "args"));
	t->text = reply ? json_text(reply, &len) : NULL;
	if (!t->text)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	*ret = (struct tool_calls_answer){
		.call = call, .tool = "extensions", .text = t->text, .len = len
	};
	return 1;
}

static const char too_much[] = "too many bytes in tool calls at once (max 67108864)";
_Static_assert(HELD_MAX == 67108864, "as the message says");

static int dispatch_known(struct tool_calls *t, const struct tool *tool, uint64_t call,
			  const char *args, size_t args_len, struct tool_calls_answer *ret,
			  struct cordon_error **reterr)
{
	int r = budget_take_tool(&t->budget, tool->index, tool->max_calls);

	if (r < 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (r == 0)
		return refuse(t, call, tool->name, TOOL_CALLS_BUDGET,
			      str_printf("Maximum calls of tool '%s' (%" PRIu64 ") exceeded",
					 tool->name, tool->max_calls),
			      ret, reterr);
	uint64_t most = registry_argument_max(tool, t->policy);
	if (args_len > most)
		return refuse(t, call, tool->name, TOOL_CALLS_BAD_ARGS,
			      str_printf("Tool '%s': arguments too large (%zu bytes, max %" PRIu64
					 ")",
					 tool->name, args_len, most),
			      ret, reterr);
	char *wrong = schema_refusal(tool->schema, tool->name, args, args_len);
	if (wrong)
		return refuse(t, call, tool->name, TOOL_CALLS_BAD_ARGS, wrong, ret, reterr);
	if (t->pending >= PENDING_MAX)
		return refuse(t, call, tool->name, TOOL_CALLS_BUDGET,
			      str_printf("Maximum tool calls at once (%d) exceeded", PENDING_MAX),
			      ret, reterr);
	if (t->pending > 0 && t->held + args_len > HELD_MAX)
		return refuse(t, call, tool->name, TOOL_CALLS_BUDGET, str_dup(too_much), ret,
			      reterr);
	if (tool->approval && !t->approval)
		return refuse(t, call, tool->name, TOOL_CALLS_DENIED,
			      str_printf("Tool '%s' needs approval, and nobody is there to give it",
					 tool->name),
			      ret, reterr);
	struct cordon_call *c =
		call_new(&(struct call_new){ .slot = t->slot,
					     .registry = t->tools,
					     .tool = tool,
					     .number = call,
					     .result_max = registry_result_max(tool, t->policy),
					     .session = t->session,
					     .args = args,
					     .args_len = args_len });
	if (!c)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	return tool->approval ? ask(t, c, ret, reterr) : start(t, c, ret, reterr);
}

int tool_calls_dispatch(struct tool_calls *t, uint64_t call, const char *tool, const char *args,
			size_t args_len, struct tool_calls_answer *ret,
			struct cordon_error **reterr)
{
	forget_answer(t);
	if (!budget_take(&t->budget))
		return refuse(
			t, call, schema_is_name(tool) ? tool : "<invalid>", TOOL_CALLS_BUDGET,
			str_printf("Maximum tool calls (%" PRIu64 ") exceeded", t->budget.limit),
			ret, reterr);
	if (!schema_is_name(tool))
		return refuse(t, call, "<invalid>", TOOL_CALLS_UNKNOWN,
			      str_dup("Unknown tool: <invalid>"), ret, reterr);
	const struct tool *found = registry_find(t->tools, tool);
	if (!found && str_eq(tool, "extensions"))
		return answer_extensions(t, call, args, args_len, ret, reterr);
	if (!found)
		return refuse(t, call, tool, TOOL_CALLS_UNKNOWN,
			      str_printf("Unknown tool: %s", tool), ret, reterr);
	if (registry_denied_by(t->policy, found))
		return refuse(t, call, tool, TOOL_CALLS_DENIED,
			      str_printf("%s: tool not allowed by security policy", tool), ret,
			      reterr);
	return dispatch_known(t, found, call, args, args_len, ret, reterr);
}

/* Makes tool_calls_fd() readable. */
static void wake(struct tool_calls *t)
{
	(void)os_event_set(t->slot->wake_fd);
}

/* Handles wake-ups, the timer and output of commands. */
static void take_events(struct tool_calls *t)
{
	void *tag;

	/* One event at a time: a call may have several descriptors, and the first may end it. */
	while (os_watch_next(t->watch_fd, &tag)) {
		struct cordon_call *c = tag;
		if (!c) {
			os_event_clear(t->slot->wake_fd);
			os_timer_clear(t->timer_fd);
		} else if (c->run && command_step(c->run) > 0) {
			call_take_command(c);
		} else if (c->run) {
			count_held(t, c, c->args_len + command_held(c->run));
			if (t->held > HELD_MAX &&
			    c->held < t->held) { /* one call alone may use everything */
				c->run = command_run_free(c->run);
				call_settle(c, true, str_dup(too_much));
			}
		}
	}
}

int tool_calls_next(struct tool_calls *t, struct tool_calls_answer *ret,
		    struct cordon_error **reterr)
{
	forget_answer(t);
	take_events(t);
	for (struct cordon_call *c = t->first, *next; c; c = next) {
		bool is_late, was_asked = c->stage == CALL_APPROVAL;
		next = c->next;
		if (!call_is_ready(c, &is_late))
			continue;
		if (was_asked)
			stop_waiting(t);
		unlink_call(t, c);
		if (is_late && was_asked)
			(void)tool_audit_decision(t->audit, c, "timeout", NULL, NULL);
		if (is_late) {
			call_time_out(c);
			c->cause = TOOL_CALLS_TIMEOUT;
		}
		int r = was_asked && !is_late ? take_decision(t, c, ret, reterr)
					      : finish(t, c, ret, reterr);
		if (r != 0) {
			if (t->first)
				wake(t); /* more calls may be ready */
			return r;
		}
	}
	return 0;
}

static struct cordon_call *find_approval(struct tool_calls *t, const char *id)
{
	for (struct cordon_call *c = t->first; c; c = c->next)
		if (c->stage == CALL_APPROVAL && !c->is_resolved && strcmp(c->approval_id, id) == 0)
			return c;
	return NULL;
}

int tool_calls_resolve(struct tool_calls *t, const char *approval_id, bool allow,
		       const char *value_json, const char *reason, struct cordon_error **reterr)
{
	cleanup_free char *value = allow ? str_dup(value_json) : NULL, *why = str_dup(reason);

	if ((allow && value_json && !value) || (reason && !why))
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	const char *bad = value ? scan_value(value, strlen(value)) : NULL;
	if (bad)
		return err_set(reterr, CORDON_INVALID, "the replacing value must be JSON text: %s",
			       bad);
	pthread_mutex_lock(&t->slot->lock);
	struct cordon_call *c = find_approval(t, approval_id);
	if (c) {
		c->is_resolved = true;
		c->is_allowed = allow;
		c->reason = TAKE_PTR(why);
		c->is_answered = value != NULL;
		c->answer_len = value ? strlen(value) : 0;
		c->answer = TAKE_PTR(value);
		wake(t);
	}
	pthread_mutex_unlock(&t->slot->lock);
	return c ? 0 : err_set(reterr, CORDON_NOT_FOUND, "no such approval is pending");
}

int tool_calls_names(const struct tool_calls *t, struct strlist *ret)
{
	return t->tools ? registry_names(t->tools, ret) : 0;
}

json_t *tool_calls_take_denials(struct tool_calls *t)
{
	return TAKE_PTR(t->denials);
}

uint64_t tool_calls_argument_max(const struct tool_calls *t)
{
	return registry_argument_most(t->tools, t->policy);
}

char *tool_calls_describe(const struct tool_calls *t)
{
	cleanup_json json_t *list = registry_list(t->tools, t->policy);

	return list ? json_text(list, NULL) : NULL;
}
