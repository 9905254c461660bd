/* tools/desk.c - one session's tool calls, from the guest's words to the answer. */
#include "tools/desk.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "tools/budget.h"
#include "tools/call.h"
#include "tools/command.h"
#include "tools/denial.h"
#include "tools/extensions.h"
#include "tools/record.h"
#include "tools/registry.h"
#include "tools/schema.h"
#include "wire/scan.h"

/* Calls that wait at once, and the bytes of arguments and output that they may keep in the host. */
enum { PENDING_MAX = 256, HELD_MAX = 64 << 20 };

struct desk {
	struct cordon_tools *tools;
	const struct policy *policy;
	char *session;
	struct audit *audit;
	cordon_approval_fn approval;
	void *approval_arg;
	struct callbox *box;
	int epoll_fd, timer_fd;
	deadline_ns armed; /* what the timer is set to; 0: nothing */
	/* Calls that wait for something; linked under box->lock, for desk_resolve(). */
	struct cordon_call *first, *last;
	size_t pending, held; /* calls, and bytes of them (call_held) */
	struct budget budget;
	size_t waiting; /* approvals */
	uint64_t waited_ns, wait_start_ns;
	json_t *denials; /* of this execution; NULL: none */
	/* What the last answer's text lives in. */
	struct cordon_call *answered;
	char *text;
};

static int open_descriptors(struct desk *d)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };

	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (d->epoll_fd < 0 || d->timer_fd < 0 ||
	    epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, d->box->wake_fd, &event) < 0)
		return -1;
	return epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, d->timer_fd, &event);
}

int desk_new(const struct desk_options *opts, struct desk **ret, struct cordon_error **reterr)
{
	cleanup_desk struct desk *d = mem_alloc(sizeof(*d));

	if (!d)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	d->epoll_fd = d->timer_fd = -1;
	d->box = callbox_new();
	d->session = str_dup(opts->session);
	if (!d->session)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (!d->box || (opts->tools && open_descriptors(d) < 0)) /* else all calls are refused */
		return err_errno(reterr, errno, "make the descriptors for tool calls");
	d->tools = cordon_tools_ref(opts->tools);
	d->policy = opts->policy;
	d->audit = opts->audit;
	d->approval = opts->approval;
	d->approval_arg = opts->approval_arg;
	*ret = TAKE_PTR(d);
	return 0;
}

static void forget_answer(struct desk *d)
{
	d->answered = call_unref(d->answered);
	free_ptrp(&d->text);
}

struct desk *desk_free(struct desk *d)
{
	if (!d)
		return NULL;
	desk_end(d);
	forget_answer(d);
	close_fdp(&d->epoll_fd);
	close_fdp(&d->timer_fd);
	callbox_unref(d->box);
	cordon_tools_unref(d->tools);
	free(d->session);
	budget_done(&d->budget);
	json_decref(d->denials);
	free(d);
	return NULL;
}

int desk_fd(const struct desk *d)
{
	return d->epoll_fd;
}

uint64_t desk_get_calls(const struct desk *d)
{
	return d->budget.made;
}

bool desk_is_waiting(const struct desk *d)
{
	return d->waiting > 0;
}

uint64_t desk_waited_ns(const struct desk *d)
{
	return d->waited_ns + (d->waiting > 0 ? clock_now_ns() - d->wait_start_ns : 0);
}

void desk_begin(struct desk *d, uint64_t tool_calls)
{
	desk_end(d);
	json_decref(TAKE_PTR(d->denials));
	budget_begin(&d->budget, tool_calls);
	d->waited_ns = 0;
}

/* Without its record nothing may go on, where the policy says so. */
static int heed_audit(const struct desk *d, int r, struct cordon_error **reterr)
{
	if (r >= 0)
		return 0;
	if (d->policy->audit_required)
		return err_wrap(reterr, r, "the audit log is required");
	if (reterr)
		*reterr = cordon_error_free(*reterr);
	return 0;
}

static void arm_timer(struct desk *d)
{
	deadline_ns soonest = 0;

	for (const struct cordon_call *c = d->first; c; c = c->next)
		if (c->deadline && (soonest == 0 || c->deadline < soonest))
			soonest = c->deadline;
	if (soonest == d->armed)
		return;
	d->armed = soonest;
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(soonest / 1000000000),
					       .tv_nsec = (long)(soonest % 1000000000) } };
	(void)timerfd_settime(d->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Keeps the books about what a pending call holds. */
static void count_held(struct desk *d, struct cordon_call *c, size_t held)
{
	d->held = d->held - c->held + held;
	c->held = held;
}

static void link_call(struct desk *d, struct cordon_call *c)
{
	count_held(d, c, c->args_len);
	pthread_mutex_lock(&d->box->lock);
	c->prev = d->last;
	*(d->last ? &d->last->next : &d->first) = c;
	d->last = c;
	d->pending++;
	pthread_mutex_unlock(&d->box->lock);
	arm_timer(d);
}

static void unlink_call(struct desk *d, struct cordon_call *c)
{
	count_held(d, c, 0);
	pthread_mutex_lock(&d->box->lock);
	*(c->prev ? &c->prev->next : &d->first) = c->next;
	*(c->next ? &c->next->prev : &d->last) = c->prev;
	c->prev = c->next = NULL;
	d->pending--;
	pthread_mutex_unlock(&d->box->lock);
	arm_timer(d);
}

static void stop_waiting(struct desk *d)
{
	if (--d->waiting == 0)
		d->waited_ns += clock_now_ns() - d->wait_start_ns;
}

void desk_end(struct desk *d)
{
	static const char why[] = "abandoned: the execution ended";

	while (d->first) {
		struct cordon_call *c = d->first;
		unlink_call(d, c);
		if (c->stage == CALL_APPROVAL)
			stop_waiting(d);
		call_abandon(c);
		c->run = command_run_free(c->run);
		(void)record_result(d->audit, c, true, why, sizeof(why) - 1, NULL);
		call_unref(c);
	}
}

/* Answers without a call: takes the message. */
static int refuse(struct desk *d, uint64_t call, const char *tool, enum desk_cause cause,
		  char *message, struct desk_answer *ret, struct cordon_error **reterr)
{
	static const char *const names[] = { [DESK_UNKNOWN] = "unknown",
					     [DESK_DENIED] = "tools",
					     [DESK_BAD_ARGS] = "arguments",
					     [DESK_BUDGET] = "budget" };
	if (!message)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	d->text = message;
	const char *why = names[cause];
	const struct tool *known = registry_find(d->tools, tool);
	if (cause == DESK_DENIED && known)
		why = registry_denied_by(d->policy, known) ?: "approval";
	if (cause == DESK_DENIED)
		denial_add(&d->denials, tool, why);
	int r = record_refusal(d->audit, d->session, tool, why, message, reterr);
	r = heed_audit(d, r, reterr);
	if (r < 0)
		return r;
	*ret = (struct desk_answer){ .call = call,
				     .cause = cause,
				     .is_error = true,
				     .tool = "",
				     .text = message,
				     .len = strlen(message) };
	return 1;
}

/* Takes the call, which is linked nowhere and answered (or never will be). */
static int finish(struct desk *d, struct cordon_call *c, struct desk_answer *ret,
		  struct cordon_error **reterr)
{
	static const char silence[] = "the tool gave no answer";

	d->answered = c;
	pthread_mutex_lock(&c->box->lock);
	c->is_abandoned = true;
	bool is_error = !c->is_answered || c->is_error;
	const char *text = c->is_answered ? c->answer : silence;
	size_t len = c->is_answered ? c->answer_len : sizeof(silence) - 1;
	pthread_mutex_unlock(&c->box->lock);
	if (is_error) {
		d->text = cordon_sanitize(text, 0);
		if (!d->text)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
		text = d->text;
		len = strlen(text);
	}
	int r = record_result(d->audit, c, is_error, text, len, reterr);
	r = heed_audit(d, r, reterr);
	if (r < 0)
		return r;
	if (is_error && c->cause == DESK_VALUE)
		c->cause = DESK_FAILED;
	*ret = (struct desk_answer){ .call = c->number,
				     .cause = (enum desk_cause)c->cause,
				     .is_error = is_error,
				     .tool = c->tool->name,
				     .text = text,
				     .len = len };
	return 1;
}

/* Runs a call that may run. 1: *ret is its answer, 0: it is pending. Takes the call. */
static int start(struct desk *d, struct cordon_call *c, struct desk_answer *ret,
		 struct cordon_error **reterr)
{
	bool is_done = false;
	int r = record_call(d->audit, c, reterr);

	r = heed_audit(d, r, reterr);
	c->stage = CALL_RUNNING;
	c->deadline = deadline_after_ms(c->tool->timeout_ms);
	if (r >= 0 && c->tool->host) {
		r = call_start_command(c, d->epoll_fd, reterr);
		is_done = !c->run;
	} else if (r >= 0) {
		is_done = call_run(c);
		if (is_done && deadline_is_over(c->deadline)) {
			/* Too late is too late, also for an answer that is there. */
			free_ptrp(&c->answer);
			c->is_answered = false;
			call_time_out(c);
			c->cause = DESK_TIMEOUT;
		}
	}
	if (r < 0) {
		call_abandon(c);
		call_unref(c);
		return r;
	}
	if (is_done)
		return finish(d, c, ret, reterr);
	link_call(d, c);
	return 0;
}

/* The host has decided. The call is linked nowhere. */
static int take_decision(struct desk *d, struct cordon_call *c, struct desk_answer *ret,
			 struct cordon_error **reterr)
{
	bool is_replaced = c->is_answered && !c->is_error;
	const char *decision = !c->is_allowed ? "deny" : is_replaced ? "replace" : "allow";
	int r = record_decision(d->audit, c, decision, c->reason, reterr);

	r = heed_audit(d, r, reterr);
	if (r < 0) {
		call_abandon(c);
		call_unref(c);
		return r;
	}
	if (c->is_allowed && !is_replaced)
		return start(d, c, ret, reterr);
	if (!c->is_allowed) {
		c->cause = DESK_DENIED;
		denial_add(&d->denials, c->tool->name, "approval");
		call_settle(c, true,
			    str_printf("Tool '%s' was denied%s%s", c->tool->name,
				       c->reason ? ": " : "", c->reason ? c->reason : ""));
	}
	return finish(d, c, ret, reterr);
}

static bool is_decided(struct cordon_call *c)
{
	pthread_mutex_lock(&c->box->lock);
	bool is = c->is_resolved;
	pthread_mutex_unlock(&c->box->lock);
	return is;
}

/* Suspends the call and asks. Takes the call. */
static int ask(struct desk *d, struct cordon_call *c, struct desk_answer *ret,
	       struct cordon_error **reterr)
{
	char id[CALL_ID_HEX + 1];
	int r = record_approval(d->audit, c, reterr);

	r = heed_audit(d, r, reterr);
	if (r < 0) {
		call_unref(c);
		return r;
	}
	random_hex(id, CALL_ID_HEX);
	memcpy(c->approval_id, id, sizeof(id));
	c->stage = CALL_APPROVAL;
	c->deadline = d->policy->approval_timeout_ms == POLICY_UNLIMITED
			      ? 0
			      : deadline_after_ms(d->policy->approval_timeout_ms);
	if (d->waiting++ == 0)
		d->wait_start_ns = clock_now_ns();
	link_call(d, c);
	struct cordon_approval approval = { .id = id,
					    .session = c->session,
					    .kind = "tool",
					    .what = c->tool->name,
					    .detail = c->args };
	d->approval(&approval, d->approval_arg);
	if (!is_decided(c))
		return 0;
	stop_waiting(d);
	unlink_call(d, c);
	return take_decision(d, c, ret, reterr);
}

/* The command `extensions`, which every guest has unless a tool is called so. */
static int answer_extensions(struct desk *d, uint64_t call, const char *args, size_t len,
			     struct desk_answer *ret, struct cordon_error **reterr)
{
	cleanup_json json_t *parsed = NULL;
	int r = json_parse(args, len, 0, &parsed, reterr);

	if (r < 0)
		return r;
	cleanup_json json_t *reply =
		extensions_run(d->tools, d->policy, json_object_get(parsed, "args"));
	d->text = reply ? json_text(reply, &len) : NULL;
	if (!d->text)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	*ret = (struct desk_answer){
		.call = call, .tool = "extensions", .text = d->text, .len = len
	};
	return 1;
}

static const char too_much[] = "too many bytes in tool calls at once (max 67108864)";
_Static_assert(HELD_MAX == 67108864, "as the message says");

static int dispatch_known(struct desk *d, const struct tool *tool, uint64_t call, const char *args,
			  size_t args_len, struct desk_answer *ret, struct cordon_error **reterr)
{
	int r = budget_take_tool(&d->budget, tool->index, tool->max_calls);

	if (r < 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (r == 0)
		return refuse(d, call, tool->name, DESK_BUDGET,
			      str_printf("Maximum calls of tool '%s' (%" PRIu64 ") exceeded",
					 tool->name, tool->max_calls),
			      ret, reterr);
	uint64_t most = registry_argument_max(tool, d->policy);
	if (args_len > most)
		return refuse(d, call, tool->name, DESK_BAD_ARGS,
			      str_printf("Tool '%s': arguments too large (%zu bytes, max %" PRIu64
					 ")",
					 tool->name, args_len, most),
			      ret, reterr);
	char *wrong = schema_refusal(tool->schema, tool->name, args, args_len);
	if (wrong)
		return refuse(d, call, tool->name, DESK_BAD_ARGS, wrong, ret, reterr);
	if (d->pending >= PENDING_MAX)
		return refuse(d, call, tool->name, DESK_BUDGET,
			      str_printf("Maximum tool calls at once (%d) exceeded", PENDING_MAX),
			      ret, reterr);
	if (d->pending > 0 && d->held + args_len > HELD_MAX)
		return refuse(d, call, tool->name, DESK_BUDGET, str_dup(too_much), ret, reterr);
	if (tool->approval && !d->approval)
		return refuse(d, call, tool->name, DESK_DENIED,
			      str_printf("Tool '%s' needs approval, and nobody is there to give it",
					 tool->name),
			      ret, reterr);
	struct cordon_call *c =
		call_new(&(struct call_new){ .box = d->box,
					     .registry = d->tools,
					     .tool = tool,
					     .number = call,
					     .result_max = registry_result_max(tool, d->policy),
					     .session = d->session,
					     .args = args,
					     .args_len = args_len });
	if (!c)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	return tool->approval ? ask(d, c, ret, reterr) : start(d, c, ret, reterr);
}

int desk_dispatch(struct desk *d, uint64_t call, const char *tool, const char *args,
		  size_t args_len, struct desk_answer *ret, struct cordon_error **reterr)
{
	forget_answer(d);
	if (!budget_take(&d->budget))
		return refuse(
			d, call, schema_is_name(tool) ? tool : "<invalid>", DESK_BUDGET,
			str_printf("Maximum tool calls (%" PRIu64 ") exceeded", d->budget.limit),
			ret, reterr);
	if (!schema_is_name(tool))
		return refuse(d, call, "<invalid>", DESK_UNKNOWN,
			      str_dup("Unknown tool: <invalid>"), ret, reterr);
	const struct tool *found = registry_find(d->tools, tool);
	if (!found && str_eq(tool, "extensions"))
		return answer_extensions(d, call, args, args_len, ret, reterr);
	if (!found)
		return refuse(d, call, tool, DESK_UNKNOWN, str_printf("Unknown tool: %s", tool),
			      ret, reterr);
	if (registry_denied_by(d->policy, found))
		return refuse(d, call, tool, DESK_DENIED,
			      str_printf("%s: tool not allowed by security policy", tool), ret,
			      reterr);
	return dispatch_known(d, found, call, args, args_len, ret, reterr);
}

/* Makes desk_fd() readable. */
static void wake(struct desk *d)
{
	static const uint64_t one = 1;

	(void)!write(d->box->wake_fd, &one, sizeof(one));
}

/* Takes in what happened: wakes, the timer, commands that went on. */
static void take_events(struct desk *d)
{
	struct epoll_event event;
	uint64_t count;

	/* One at a time: a call may have several descriptors and end with the first of them. */
	while (epoll_wait(d->epoll_fd, &event, 1, 0) > 0) {
		struct cordon_call *c = event.data.ptr;
		if (!c) {
			(void)!read(d->box->wake_fd, &count, sizeof(count));
			(void)!read(d->timer_fd, &count, sizeof(count));
		} else if (c->run && command_step(c->run) > 0) {
			call_take_command(c);
		} else if (c->run) {
			count_held(d, c, c->args_len + command_held(c->run));
			if (d->held > HELD_MAX && c->held < d->held) { /* others hold it, too */
				c->run = command_run_free(c->run);
				call_settle(c, true, str_dup(too_much));
			}
		}
	}
}

/* Whether a pending call can go on, because of an answer, a decision or its deadline. */
static bool is_ready(struct cordon_call *c, bool *ret_late)
{
	pthread_mutex_lock(&c->box->lock);
	bool is = c->stage == CALL_APPROVAL ? c->is_resolved : c->is_answered;
	pthread_mutex_unlock(&c->box->lock);
	*ret_late = !is && deadline_is_over(c->deadline);
	return is || *ret_late;
}

int desk_next(struct desk *d, struct desk_answer *ret, struct cordon_error **reterr)
{
	forget_answer(d);
	take_events(d);
	for (struct cordon_call *c = d->first, *next; c; c = next) {
		bool is_late, was_asked = c->stage == CALL_APPROVAL;
		next = c->next;
		if (!is_ready(c, &is_late))
			continue;
		if (was_asked)
			stop_waiting(d);
		unlink_call(d, c);
		if (is_late && was_asked)
			(void)record_decision(d->audit, c, "timeout", NULL, NULL);
		if (is_late) {
			call_time_out(c);
			c->cause = DESK_TIMEOUT;
		}
		int r = was_asked && !is_late ? take_decision(d, c, ret, reterr)
					      : finish(d, c, ret, reterr);
		if (r != 0) {
			if (d->first)
				wake(d); /* there may be more, should nobody ask now */
			return r;
		}
	}
	return 0;
}

static struct cordon_call *find_approval(struct desk *d, const char *id)
{
	for (struct cordon_call *c = d->first; c; c = c->next)
		if (c->stage == CALL_APPROVAL && !c->is_resolved && strcmp(c->approval_id, id) == 0)
			return c;
	return NULL;
}

int desk_resolve(struct desk *d, const char *approval_id, bool allow, const char *value_json,
		 const char *reason, struct cordon_error **reterr)
{
	cleanup_free char *value = allow ? str_dup(value_json) : NULL, *why = str_dup(reason);

	if ((allow && value_json && !value) || (reason && !why))
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	const char *bad = value ? scan_value(value, strlen(value)) : NULL;
	if (bad)
		return err_set(reterr, CORDON_INVALID, "the replacing value must be JSON text: %s",
			       bad);
	pthread_mutex_lock(&d->box->lock);
	struct cordon_call *c = find_approval(d, approval_id);
	if (c) {
		c->is_resolved = true;
		c->is_allowed = allow;
		c->reason = TAKE_PTR(why);
		c->is_answered = value != NULL;
		c->answer_len = value ? strlen(value) : 0;
		c->answer = TAKE_PTR(value);
		wake(d);
	}
	pthread_mutex_unlock(&d->box->lock);
	return c ? 0 : err_set(reterr, CORDON_NOT_FOUND, "no such approval is pending");
}

int desk_names(const struct desk *d, struct strlist *ret)
{
	return d->tools ? registry_names(d->tools, ret) : 0;
}

json_t *desk_take_denials(struct desk *d)
{
	return TAKE_PTR(d->denials);
}

uint64_t desk_argument_max(const struct desk *d)
{
	return registry_argument_most(d->tools, d->policy);
}

char *desk_describe(const struct desk *d)
{
	cleanup_json json_t *list = registry_list(d->tools, d->policy);

	return list ? json_text(list, NULL) : NULL;
}
