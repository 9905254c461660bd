/* session/execution.c - one execution: a single poll loop over the wire, the streams, the
 * supervisor, the caller's cancel and the clock. */
#include "session/execution.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/random.h"
#include "session/execution_buffer.h"
#include "session/execution_messages.h"
#include "session/network.h"
#include "session/result.h"

/* SETTLE_MS: for pid 1 to pass an interrupt on. STOPS: how often code is asked to stop. */
enum { CPU_CHECK_MS = 200, BRIEF_MS = 10, SETTLE_MS = 10000, STOPS = 2 };

/* Ends the execution because the guest broke the protocol or (is_own) the host failed. */
static void break_off(struct execution *x, bool is_own, struct cordon_error *e)
{
	*(is_own ? &x->evidence.internal : &x->evidence.protocol) = err_text(e);
	x->is_over = x->is_dead = true;
	cordon_error_free(e);
}

/* r is what the tool calls returned. 1: an answer, 0: none yet, negative: an error in the host. */
static void send_answer(struct execution *x, int r, const struct tool_calls_answer *a,
			struct cordon_error *e)
{
	struct wire *w = x->engine->wire;

	x->evidence.has_failed_call |= r > 0 && a->is_error;
	if (r > 0)
		r = a->is_error ? wire_send_tool_error(w, x->id, a->call, a->text, &e)
				: wire_send_tool_value(w, x->id, a->call, a->text, a->len, &e);
	if (r == -CORDON_LIMIT &&
	    !a->is_error) { /* the guest has not read enough of the earlier answers */
		e = cordon_error_free(e);
		x->evidence.has_failed_call = true;
		r = wire_send_tool_error(w, x->id, a->call, "result too large", &e);
	}
	if (r < 0)
		break_off(x, true, e);
}

static void call_tool(struct execution *x, const struct wire_message *m)
{
	struct cordon_error *e = NULL;
	struct tool_calls_answer a = { .call = m->call, .is_error = true };

	if (x->stop_by != 0) {
		a.text = "the execution was asked to stop";
		send_answer(x, 1, &a, NULL);
		return;
	}
	int r = tool_calls_dispatch(x->session->calls, m->call, m->tool.data, m->args.data,
				    m->args.len, &a, &e);

	send_answer(x, r, &a, e);
}

/* Sends the answers of handlers, commands and approvals that have finished. */
static void serve_calls(struct execution *x)
{
	struct cordon_error *e = NULL;
	struct tool_calls_answer a;
	int r;

	while (!x->is_over && (r = tool_calls_next(x->session->calls, &a, &e)) != 0)
		send_answer(x, r, &a, e);
}

static void take_message(struct execution *x, const struct wire_message *m)
{
	struct cordon_error *e = NULL;

	switch (m->type) {
	case WIRE_RESULT:
		if (execution_buffer_take(x, m, &e) < 0)
			break_off(x, false, e);
		else
			execution_take_result(x, m);
		break;
	case WIRE_BUFFER:
		if (execution_buffer_answer(x, m, &e) < 0)
			break_off(x, false, e);
		break;
	case WIRE_OUTPUT:
		execution_take_output(x, m);
		break;
	case WIRE_TOOL_CALL:
		call_tool(x, m);
		break;
	default:
		break;
	}
}

static void serve_wire(struct execution *x, short revents)
{
	struct wire *w = x->engine->wire;
	struct cordon_error *e = NULL;
	struct wire_message m;
	int r = 0;

	if (revents & (POLLIN | POLLHUP | POLLERR))
		r = wire_fill(w, &e);
	if (r >= 0 && (revents & POLLOUT))
		r = wire_flush(w, &e);
	while (r >= 0 && !x->is_over && (r = wire_next(w, &m, &e)) > 0)
		take_message(x, &m);
	if (r < 0)
		break_off(x, false, e);
	else if (!x->is_over && wire_is_closed(w))
		x->is_over = x->is_dead = true;
}

/* The deadline's clock stops while approvals are pending. Two at once do not count twice. */
static void note_standstill(struct execution *x)
{
	struct cordon_session *s = x->session;
	uint64_t now = clock_now_ns();
	uint64_t asked = tool_calls_waited_ns(s->calls) + network_waited_ns(s->network, &x->turn);
	uint64_t by_asking = asked - x->asked_ns, by_clock = now - x->noted_ns;

	x->stood_ns += by_asking < by_clock ? by_asking : by_clock;
	x->asked_ns = asked;
	x->noted_ns = now;
	x->stands = tool_calls_is_waiting(s->calls) || network_is_waiting(s->network);
}

/* The code decides how often it asks, so the policy limits how long the clock stops in total. A
 * pause that does not end counts up to that limit; then the deadline passes. */
static deadline_ns deadline_of(const struct execution *x)
{
	uint64_t most_ms = x->session->policy.approval_total_ms;
	bool is_limited = most_ms != POLICY_UNLIMITED;
	uint64_t most_ns = is_limited ? most_ms * 1000000 : UINT64_MAX;

	if (x->deadline == 0 || (x->stands && !is_limited))
		return 0;
	return x->deadline + (x->stands || x->stood_ns > most_ns ? most_ns : x->stood_ns);
}

/* Before any code has run, the guest is the only process. */
static void look_at_cpu_first(struct engine *e)
{
	e->cpu_guest_us = box_cpu_us(e->box, BOX_CPU_GUEST);
	e->cpu_us = box_cpu_us(e->box, BOX_CPU_COUNTED);
	if (e->cpu_us == 0)
		e->cpu_us = e->cpu_guest_us;
}

/* Others ran in the place since this guest's last execution. */
static void look_at_place_first(struct engine *e)
{
	e->cpu_guest_us = box_cpu_us(e->box, BOX_CPU_GUEST);
	e->cpu_us = box_cpu_us(e->box, BOX_CPU_ALL);
}

/* Counts every process, unless that would cost more than it can find: if a guest that runs the code
 * itself took only a moment, its children used even less. Their time is then counted with the next
 * execution. */
static void look_at_cpu(const struct execution *x)
{
	struct engine *e = x->engine;
	bool is_brief = clock_now_ns() - x->started_ns < BRIEF_MS * 1000000ULL;
	uint64_t guest = box_cpu_us(e->box, BOX_CPU_GUEST), was = e->cpu_us;

	if (is_brief && !engine_is_agent(e) && !x->is_dead && guest >= e->cpu_guest_us)
		e->cpu_us += guest - e->cpu_guest_us;
	else
		e->cpu_us = box_cpu_us(e->box, BOX_CPU_ALL);
	if (e->cpu_us < was) /* ended processes may no longer be counted */
		e->cpu_us = was;
	e->cpu_guest_us = guest;
}

/* A shell's agent reads the wire at any time. The other guests read nothing while code runs, so
 * they get SIGINT as well. The message comes first: a guest that gets the signal before it runs the
 * code finds there which execution is meant. The signal was sent when this returns, so it cannot
 * hit a later execution. */
static int interrupt(struct execution *x)
{
	struct engine *e = x->engine;
	deadline_ns settle_by = deadline_after_ms(SETTLE_MS);

	if (engine_is_agent(e) && e->wire)
		return wire_send_interrupt(e->wire, x->id, NULL);
	if (e->wire && !x->is_named) {
		int r = wire_send_interrupt(e->wire, x->id, NULL);

		if (r < 0)
			return r;
		x->is_named = true;
		/* If bytes are still queued, the code itself may be among them: signal again when
		 * they are sent. */
		x->is_signal_due = wire_get_queued(e->wire) > 0;
	}
	if (x->kill_by != 0 && x->kill_by < settle_by)
		settle_by = x->kill_by;
	return box_interrupt(e->box, settle_by);
}

/* Timed out or cancelled. The code is interrupted and has the policy's grace time to stop, so that
 * the session keeps its state. Halfway it is interrupted again: for the code a second ^C, and a
 * pod's shell then kills the programs that it runs. After that the guest is killed. */
static void stop(struct execution *x)
{
	uint64_t grace_ms = x->session->policy.grace_ms;

	if (x->stops == 0) {
		x->kill_by = deadline_after_ms(grace_ms);
		/* Nobody waits for the answers any more. */
		tool_calls_end(x->session->calls);
	}
	if (grace_ms == 0 || x->evidence.is_urgent || x->stops++ == STOPS || interrupt(x) < 0) {
		x->evidence.killed = x->is_over = x->is_dead = true;
		return;
	}
	x->stop_by = x->stops == STOPS ? x->kill_by : deadline_after_ms(grace_ms / STOPS);
}

/* A cancel may be repeated until the execution has ended. That does not shorten the time it has to
 * stop, unless the caller wants it killed. */
static void cancel(struct execution *x, bool is_urgent)
{
	x->evidence.cancelled = x->evidence.cancelled || !x->evidence.timed_out;
	x->evidence.is_urgent = is_urgent;
	if (x->stop_by == 0 || is_urgent)
		stop(x);
}

static void check_clocks(struct execution *x)
{
	uint64_t limit_us = x->session->policy.cpu_seconds * 1000000;

	note_standstill(x);
	if (x->stop_by != 0) {
		if (deadline_is_over(x->stop_by))
			stop(x);
	} else if (deadline_is_over(deadline_of(x))) {
		x->evidence.timed_out = true;
		stop(x);
	} else if ((clock_now_ns() - x->started_ns) / 1000 > limit_us / 4 &&
		   box_cpu_us(x->engine->box, BOX_CPU_ALL) > x->evidence.cpu_before_us + limit_us) {
		x->evidence.over_cpu = true;
		x->is_over = x->is_dead = true;
	}
}

/* When to check the clocks again. CPU time cannot run out before some wall time has passed. */
static int patience_ms(const struct execution *x)
{
	int left = deadline_poll_ms(x->stop_by ? x->stop_by : deadline_of(x));
	uint64_t quarter_ms = x->session->policy.cpu_seconds * 250;
	uint64_t ran_ms = (clock_now_ns() - x->started_ns) / 1000000;
	int cpu = ran_ms >= quarter_ms            ? CPU_CHECK_MS
		  : quarter_ms - ran_ms > 3600000 ? 3600000
						  : (int)(quarter_ms - ran_ms) + 1;

	int soonest = left < 0 || left > cpu ? cpu : left, in = stdin_feed_patience_ms(&x->in);
	return in >= 0 && in < soonest ? in : soonest;
}

enum { P_WIRE, P_OUT, P_ERR, P_BOX, P_CANCEL, P_STDIN, P_SOURCE, P_CALLS, P_NET, P_END, P_COUNT };

static bool is_signal_due(struct execution *x)
{
	bool is_due = x->is_signal_due && wire_get_queued(x->engine->wire) == 0;

	x->is_signal_due &= !is_due;
	return is_due;
}

/* Ends the execution if the guest is gone, it was cancelled, or its time is up. */
static void look_after(struct execution *x, bool is_wanted, bool box_spoke)
{
	struct engine *e = x->engine;
	unsigned wishes = is_wanted ? session_take_wishes(x->session) : 0;
	bool is_unwanted = wishes & (WISH_CANCEL | WISH_KILL);

	if ((wishes || box_spoke) && box_is_gone(e->box)) {
		x->is_over = x->is_dead = true;
		x->evidence.cancelled |= is_unwanted && !x->evidence.timed_out;
		if (e->wire) /* a result may have arrived just before */
			serve_wire(x, POLLIN);
	} else if ((wishes & WISH_INTERRUPT || is_signal_due(x)) && interrupt(x) < 0) {
		/* The interrupt could still arrive later and hit another execution, so end the
		 * guest. */
		x->evidence.cancelled = x->is_over = x->is_dead = true;
	} else if (is_unwanted) {
		cancel(x, wishes & WISH_KILL);
	} else {
		check_clocks(x);
	}
}

/* poll(2) failed, for example because RLIMIT_NOFILE of this process is too low. After a signal,
 * only check the clocks: repeated signals must not stop them. */
static void cannot_wait(struct execution *x, int os_errno)
{
	if (os_errno == EINTR) {
		check_clocks(x);
		return;
	}
	x->evidence.internal =
		str_printf("the host cannot wait for the guest: %s", strerror(os_errno));
	x->is_over = x->is_dead = true;
}

static void wait_and_serve(struct execution *x)
{
	struct engine *e = x->engine;
	struct pollfd p[P_COUNT] = {
		[P_WIRE] = { .fd = e->wire ? wire_fd(e->wire) : -1,
			     .events = e->wire ? wire_events(e->wire) : 0 },
		[P_OUT] = { .fd = x->out.fd, .events = POLLIN },
		[P_ERR] = { .fd = x->err.fd, .events = POLLIN },
		[P_BOX] = { .fd = e->box->control_fd, .events = POLLIN },
		[P_CANCEL] = { .fd = x->session->cancel_fd, .events = POLLIN },
		[P_STDIN] = { .fd = stdin_feed_to_fd(&x->in), .events = POLLOUT },
		[P_SOURCE] = { .fd = stdin_feed_source_fd(&x->in), .events = POLLIN },
		[P_CALLS] = { .fd = tool_calls_fd(x->session->calls), .events = POLLIN },
		[P_NET] = { .fd = network_fd(x->session->network), .events = POLLIN },
		[P_END] = { .fd = e->box->end_fd, .events = POLLIN },
	};

	note_standstill(x);
	/* Use the time while the guest works. */
	(void)engine_assurance(e, &x->session->policy);
	if (poll(p, P_COUNT, patience_ms(x)) < 0) {
		cannot_wait(x, errno);
		return;
	}
	if (p[P_OUT].revents)
		(void)output_stream_read(&x->out);
	if (p[P_ERR].revents)
		(void)output_stream_read(&x->err);
	if (p[P_WIRE].revents)
		serve_wire(x, p[P_WIRE].revents);
	if (p[P_CALLS].revents)
		serve_calls(x);
	if (p[P_NET].revents)
		network_serve(x->session->network);
	if (p[P_STDIN].revents || p[P_SOURCE].revents || x->in.is_awaited)
		stdin_feed_go_on(&x->in, p[P_SOURCE].revents != 0);
	if (!x->is_over)
		look_after(x, p[P_CANCEL].revents != 0, p[P_BOX].revents || p[P_END].revents);
}

static void begin(struct execution *x)
{
	const struct policy *p = &x->session->policy;
	const struct cordon_execute_options *o = x->options;
	struct stream_options so = { .number = 1,
				     .max_bytes = p->stdout_bytes,
				     .max_lines = p->output_lines,
				     .discard = o->discard_output,
				     .passes_all = x->engine->terminal_fd >= 0,
				     .fn = o->output,
				     .arg = o->output_arg };
	uint64_t timeout = o->timeout_ms ? o->timeout_ms : p->timeout_ms;

	output_stream_begin(&x->out, x->engine->stdout_fd, &so);
	so.number = 2;
	so.max_bytes = p->stderr_bytes;
	output_stream_begin(&x->err, x->engine->stderr_fd, &so);
	evidence_begin(&x->evidence, x->engine, p);
	/* Measuring costs more than most commands, so reuse the figure from the end of the last
	 * execution. */
	if (x->engine->place)
		look_at_place_first(x->engine);
	else if (x->engine->cpu_us == 0)
		look_at_cpu_first(x->engine);
	x->evidence.cpu_before_us = x->engine->cpu_us;
	x->evidence.timeout_ms = timeout;
	x->started_ns = x->noted_ns = clock_now_ns();
	x->deadline = timeout == UINT64_MAX ? 0 : deadline_after_ms(timeout);
}

/* The arguments of a script as a JSON array; NULL: none. */
static char *args_text(const char *const *args)
{
	cleanup_json json_t *a = json_array();

	for (; args && *args; args++)
		json_array_append_new(a, json_string_lossy(*args, strlen(*args)));
	return json_array_size(a) > 0 ? json_text(a, NULL) : NULL;
}

/* Directory to change to first; NULL: none. */
static const char *where_to(const struct cordon_session *s)
{
	if (!s->is_moved)
		return NULL;
	return s->cwd ? s->cwd : s->directory ? s->directory : "/home/user";
}

/* Whether the code is checked for syntax errors before it runs. Not for a one-shot shell: that runs
 * a script, and bash reads a script command by command. */
static bool is_checked_first(const struct execution *x)
{
	const struct cordon_session *s = x->session;
	bool is_shell = s->kind == GUEST_KIND_POD || s->kind == GUEST_KIND_SH;

	return s->policy.validate && !x->options->skip_validation && !(is_shell && s->is_once);
}

static int send_question(struct execution *x, struct cordon_error **reterr)
{
	const struct cordon_execute_options *o = x->options;

	tool_calls_begin(x->session->calls, 0);
	wire_begin(x->engine->wire, x->id, 0);
	bool with_env = session_tells_env(x->session);
	cleanup_json json_t *changes = with_env ? session_take_env(x->session) : NULL;
	cleanup_free char *env = changes ? json_text(changes, NULL) : NULL;
	struct wire_inspect message = { .id = x->id,
					.question = x->session->question,
					.code = o->code,
					.code_len = o->code_len,
					.env_json = env };
	int r = wire_send_inspect(x->engine->wire, &message, reterr);
	return r < 0 ? r : 0;
}

static int send_code(struct execution *x, struct cordon_error **reterr)
{
	const struct cordon_execute_options *o = x->options;
	cleanup_json json_t *changes = session_take_env(x->session);
	cleanup_free char *env = changes ? json_text(changes, NULL) : NULL;
	struct wire_execute message = { .id = x->id,
					.code = o->code,
					.code_len = o->code_len ? o->code_len : strlen(o->code),
					.context_json = o->context_json,
					.buffer_json = o->buffer_json,
					.takes_buffer = x->takes_buffer,
					.env_json = env,
					.directory = where_to(x->session),
					.stdin_path = x->in.told,
					.is_validated = is_checked_first(x),
					.is_shown = o->show_values,
					.is_asking = o->stdin_read != NULL };
	cleanup_free char *args = args_text(o->args);

	message.args_json = args;
	if (x->engine->kind == GUEST_KIND_POD) {
		message.has_stdin = x->in.left > 0 || x->in.source >= 0;
		message.stdin_from = x->engine->stdin_written;
		message.stdin_bytes = x->in.source >= 0 ? 0 : x->in.left;
		message.stdin_path = NULL;
		message.is_last = x->session->is_once;
	}
	uint64_t calls = o->tool_calls ? o->tool_calls : x->session->policy.tool_calls;

	tool_calls_begin(x->session->calls, calls);
	wire_begin(x->engine->wire, x->id, calls);
	int r = wire_send_execute(x->engine->wire, &message, reterr);
	if (r >= 0)
		x->session->is_moved = false;
	x->session->is_env_old = true;
	return r < 0 ? r : 0;
}

/* Collects the last output, the exit cause and the figures. */
static void finish(struct execution *x)
{
	struct cordon_result *r = x->result;
	uint64_t cpu_us, peak;

	r->time_ms = (double)(clock_now_ns() - x->started_ns) / 1e6;
	if (x->is_dead && !x->evidence.has_result && !x->evidence.protocol &&
	    !x->evidence.internal && !x->evidence.timed_out && !x->evidence.cancelled &&
	    !x->evidence.over_cpu)
		(void)box_wait_gone(x->engine->box,
				    deadline_after_ms(5000)); /* it died by itself */
	look_at_cpu(x);
	if (x->is_dead)
		box_kill(x->engine->box);
	else if (x->session->is_once)
		box_end(x->engine->box); /* continues while the rest is done here */
	output_stream_drain(&x->out);
	output_stream_drain(&x->err);
	const char *assurance = engine_assurance(x->engine, &x->session->policy);
	r->assurance = str_dup(assurance);
	box_usage(x->engine->box, &cpu_us, &peak);
	if (x->engine->cpu_us > cpu_us)
		cpu_us = x->engine->cpu_us;
	if (cpu_us > x->evidence.cpu_before_us)
		r->cpu_ms = (double)(cpu_us - x->evidence.cpu_before_us) / 1e3;
	r->memory_mb = (double)peak / (1024 * 1024);
	network_end(x->session->network, &x->turn, r);
	execution_tell_lost_outputs(x);
	x->evidence.err_text = buf_text(&x->err.kept);
	x->evidence.workspace = x->session->workspace;
	x->evidence.cwd = x->session->cwd ? x->session->cwd : x->session->directory;
	exit_cause_reach(&x->evidence, x->engine, &x->session->policy, r);
	if (x->options->discard_output)
		buf_clear(&x->err.kept); /* it was kept as evidence only */
	if (x->session->is_once)
		box_release(x->engine->box);
	output_stream_trim(&x->out);
	output_stream_trim(&x->err);
	r->out = x->out.kept;
	r->err = x->err.kept;
	r->out_truncated = x->out.is_truncated;
	r->err_truncated = x->err.is_truncated;
}

/* Must be unguessable. Otherwise a message that an earlier execution sent in advance, or that one
 * of its leftover processes sends blindly, could pass for this execution's answer. Below 2^53, so
 * that it is exact in a double. */
static uint64_t fresh_id(void)
{
	uint64_t id = 0;

	random_bytes(&id, 6);
	return id + 1;
}

int execution_run(struct cordon_session *s, const struct cordon_execute_options *o,
		  struct cordon_result **ret, bool *ret_alive, struct cordon_error **reterr)
{
	cleanup_result struct cordon_result *result = result_new();
	cleanup_free struct execution *x = mem_alloc(sizeof(*x));

	if (!result || !x)
		return err_errno(reterr, ENOMEM, "execute");
	x->session = s;
	x->engine = s->engine;
	x->options = o;
	x->result = result;
	x->id = fresh_id();
	int r = execution_buffer_begin(x, reterr);
	if (r == 0)
		r = stdin_feed_begin(&x->in, s->engine, s->workspace, o, reterr);
	if (r < 0)
		return r;
	begin(x);
	network_begin(s->network, &x->turn);
	r = !x->engine->wire ? 0 : s->question ? send_question(x, reterr) : send_code(x, reterr);
	if (r < 0) {
		network_end(s->network, &x->turn, NULL);
		stdin_feed_end(&x->in);
		evidence_done(&x->evidence);
		execution_buffer_end(x);
		return r;
	}
	timeline_mark(&s->timeline, TIMELINE_SENT);
	stdin_feed_go_on(&x->in, false);
	while (!x->is_over)
		wait_and_serve(x);
	result->tool_calls = tool_calls_get_calls(s->calls);
	tool_calls_end(s->calls);
	result->denials = tool_calls_take_denials(s->calls);
	if (x->engine->wire)
		wire_end(x->engine->wire);
	stdin_feed_end(&x->in);
	execution_buffer_end(x);
	finish(x);
	evidence_done(&x->evidence);
	*ret_alive = !x->is_dead && x->engine->wire;
	if (*ret_alive && network_is_lost(s->network)) {
		result_explain_restart(result, "the gateway ended");
		(void)result_warn(
			result,
			"the gateway ended during this execution, and later requests failed; the "
			"session now has a new gateway and a new guest with the same files");
		*ret_alive = false;
	}
	*ret = TAKE_PTR(result);
	return 0;
}
