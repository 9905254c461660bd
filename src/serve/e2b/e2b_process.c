/* serve/e2b/e2b_process.c - see e2b_process.h. Output is passed on by the thread of the process,
 * without a lock, so a client that reads slowly slows its process down and nothing else. */
#include "serve/e2b/e2b_process.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"
#include "serve/e2b/connect_rpc.h"
#include "session/result.h"
#include "session/session_process.h"

static void follower_free(struct e2b_follower *f)
{
	httpd_put(f->x);
	free(f);
}

static void process_free(struct e2b_process *p)
{
	while (p->followers) {
		struct e2b_follower *f = p->followers;

		p->followers = f->next;
		httpd_stream_end(f->x, false);
		follower_free(f);
	}
	pthread_mutex_destroy(&p->gate);
	json_decref(p->config);
	free(p->tag);
	free(p);
}

void e2b_process_put(struct e2b_process *p)
{
	struct e2b_sandbox *b = p->sandbox;

	pthread_mutex_lock(&b->lock);
	bool is_last = --p->refs == 0;
	pthread_mutex_unlock(&b->lock);
	if (!is_last)
		return;
	process_free(p);
	pthread_mutex_lock(&b->lock);
	b->process_count--; /* then the sandbox may go */
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

static struct e2b_follower *follower_new(struct httpd_exchange *x)
{
	struct e2b_follower *f = mem_alloc(sizeof(*f));
	const char *ping = httpd_header(x, "Keepalive-Ping-Interval");
	long s = ping ? strtol(ping, NULL, 10) : 0;

	if (!f)
		return NULL;
	f->ping_ms = s > 0 && s < 3600 ? (uint64_t)s * 1000 : 0;
	f->ping = deadline_after_ms(f->ping_ms);
	f->x = httpd_ref(x);
	return f;
}

/* The followers at this moment, with references. */
static size_t take_followers(struct e2b_process *p, struct httpd_exchange *ret[E2B_FOLLOWERS_MAX])
{
	size_t n = 0;

	pthread_mutex_lock(&p->sandbox->lock);
	for (struct e2b_follower *f = p->followers; f && n < E2B_FOLLOWERS_MAX; f = f->next) {
		f->ping = deadline_after_ms(f->ping_ms);
		ret[n++] = httpd_ref(f->x);
	}
	pthread_mutex_unlock(&p->sandbox->lock);
	return n;
}

static void drop_follower(struct e2b_process *p, const struct httpd_exchange *x)
{
	struct e2b_follower *gone = NULL;

	pthread_mutex_lock(&p->sandbox->lock);
	for (struct e2b_follower **at = &p->followers; *at; at = &(*at)->next)
		if ((*at)->x == x) {
			gone = *at;
			*at = gone->next;
			break;
		}
	pthread_mutex_unlock(&p->sandbox->lock);
	if (!gone)
		return;
	httpd_stream_end(gone->x, false);
	follower_free(gone);
}

static void tell_all(struct e2b_process *p, const char *text, size_t len)
{
	struct httpd_exchange *all[E2B_FOLLOWERS_MAX];
	size_t n = take_followers(p, all), frame_len = 0;
	cleanup_free char *frame = n ? connect_rpc_frame(0, text, len, &frame_len) : NULL;

	for (size_t i = 0; i < n; i++) {
		if (!frame || !httpd_stream_write(all[i], frame, frame_len))
			drop_follower(p, all[i]);
		httpd_put(all[i]);
	}
}

static void on_output(int stream, const char *bytes, size_t len, void *arg)
{
	struct e2b_process *p = arg;
	const char *name = p->has_terminal ? "pty" : stream == 2 ? "stderr" : "stdout";

	pthread_mutex_lock(&p->gate);
	pthread_mutex_unlock(&p->gate);
	cleanup_free char *data = base64_encode(bytes, len, NULL);
	cleanup_free char *text =
		data ? str_printf("{\"event\":{\"data\":{\"%s\":\"%s\"}}}", name, data) : NULL;
	if (text)
		tell_all(p, text, strlen(text));
}

static json_t *end_event(const struct e2b_process *p, const struct cordon_result *r)
{
	bool is_signal = p->is_killed;
	int code = r ? r->exit_code : 1;
	const char *error = r ? r->error : "the process could not be run";
	cleanup_free char *status =
		is_signal ? str_dup("signal: killed") : str_printf("exit status %d", code);
	json_t *end = json_object(), *event = json_object(), *j = json_object();

	json_object_set_new(end, "exitCode", json_integer(is_signal ? -1 : code));
	json_object_set_new(end, "exited", json_boolean(!is_signal));
	json_object_set_new(end, "status", json_string(status ? status : ""));
	if (is_signal || code != 0)
		json_object_set_new(end, "error",
				    json_string(is_signal || !error ? status : error));
	json_object_set_new(event, "end", end);
	json_object_set_new(j, "event", event);
	return j;
}

/* Out of the list of those that run. */
static void remove_process(struct e2b_process *p)
{
	pthread_mutex_lock(&p->sandbox->lock);
	for (struct e2b_process **at = &p->sandbox->processes; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	pthread_mutex_unlock(&p->sandbox->lock);
}

static void end_followers(struct e2b_process *p, const struct cordon_result *r)
{
	cleanup_json json_t *event = end_event(p, r);
	cleanup_free char *text = json_text(event, NULL);
	bool is_late = r && str_eq(cordon_result_error_kind(r), "timeout");

	pthread_mutex_lock(&p->sandbox->lock);
	struct e2b_follower *all = p->followers;
	p->followers = NULL;
	bool is_gone = p->sandbox->state == E2B_GONE;
	pthread_mutex_unlock(&p->sandbox->lock);
	while (all) {
		struct e2b_follower *f = all;
		size_t len = 0;

		all = f->next;
		if (is_gone) {
			/* The client sees a cut connection, and asks whether the sandbox is gone.
			 */
			httpd_stream_end(f->x, false);
		} else if (is_late) {
			connect_rpc_end(f->x, "deadline_exceeded",
					"the process was ended at its deadline");
		} else {
			cleanup_free char *frame =
				text ? connect_rpc_frame(0, text, strlen(text), &len) : NULL;
			if (frame)
				(void)httpd_stream_write(f->x, frame, len);
			connect_rpc_end(f->x, NULL, NULL);
		}
		follower_free(f);
	}
}

/* The last callback. */
static void on_end(uint64_t number, void *arg)
{
	struct e2b_process *p = arg;
	struct cordon_result *r = NULL;

	pthread_mutex_lock(&p->gate);
	pthread_mutex_unlock(&p->gate);
	remove_process(p);
	r = session_process_result(p->sandbox->session, number);
	end_followers(p, r);
	cordon_result_free(r);
	e2b_process_put(p);
}

static json_t *start_event(uint32_t pid)
{
	return json_pack("{s:{s:{s:I}}}", "event", "start", "pid", (json_int_t)pid);
}

/* Before its output begins: the gate is closed. Who knows the pid can use it at once. */
static void announce(struct e2b_process *p, struct httpd_exchange *x)
{
	struct e2b_sandbox *b = p->sandbox;
	enum { BEGIN_MS = 5000, NAP_NS = 200000 };
	deadline_ns until = deadline_after_ms(BEGIN_MS);
	pid_t pid = 0;

	while ((pid = session_process_pid(p->sandbox->session, p->number)) == 0 &&
	       !deadline_is_over(until))
		(void)nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
	/* One that has ended already has none: a number that no process of the sandbox has. */
	p->pid = pid > 0 ? (uint32_t)pid : (uint32_t)(10000000 + p->number);
	pthread_mutex_lock(&b->lock);
	p->next = b->processes;
	b->processes = p;
	pthread_mutex_unlock(&b->lock);
	connect_rpc_begin(x);
	(void)connect_rpc_send(x, start_event(p->pid));
}

static struct e2b_process *process_new(struct e2b_sandbox *b, const struct e2b_process_options *o,
				       struct httpd_exchange *x)
{
	struct e2b_process *p = mem_alloc(sizeof(*p));

	if (!p)
		return NULL;
	p->sandbox = b;
	p->config = json_deep_copy(o->config);
	p->tag = str_dup(o->tag);
	p->has_terminal = o->has_terminal;
	p->refs = 2; /* of the caller and of the last callback */
	pthread_mutex_init(&p->gate, NULL);
	p->followers = follower_new(x);
	if (p->followers && (p->tag || !o->tag)) {
		pthread_mutex_lock(&b->lock);
		b->process_count++;
		pthread_mutex_unlock(&b->lock);
		return p;
	}
	p->refs = 0;
	process_free(p);
	return NULL;
}

int e2b_process_run(struct e2b_sandbox *b, const struct e2b_process_options *o,
		    struct httpd_exchange *x, struct cordon_error **reterr)
{
	struct e2b_process *p = process_new(b, o, x);

	if (!p)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	/* The policy's, which no client prolongs. */
	uint64_t policy_ms = b->session->policy.timeout_ms;
	uint64_t limit = policy_ms == POLICY_UNLIMITED ? 0 : policy_ms;
	struct cordon_command_options c = {
		.command = o->command,
		.directory = o->directory,
		.env = o->env,
		.stdin_bytes = o->has_stdin || o->has_terminal ? NULL : "",
		.timeout_ms = limit && (o->timeout_ms == 0 || o->timeout_ms > limit) ? limit
			      : o->timeout_ms                                        ? o->timeout_ms
										     : UINT64_MAX,
		.output = on_output,
		.output_arg = p,
		.discard_output = true,
		.ended = on_end,
		.ended_arg = p,
		.pty = o->has_terminal,
		.pty_rows = o->rows,
		.pty_columns = o->columns,
	};
	pthread_mutex_lock(&p->gate);
	int r = cordon_process_start(b->session, &c, &p->number, reterr);
	if (r == 0)
		announce(p, x);
	pthread_mutex_unlock(&p->gate);
	if (r < 0) {
		follower_free(TAKE_PTR(p->followers));
		p->refs--; /* there will be no last callback */
	}
	e2b_process_put(p);
	return r;
}

struct e2b_process *e2b_process_get(struct e2b_sandbox *b, uint32_t pid, const char *tag)
{
	struct e2b_process *p;

	pthread_mutex_lock(&b->lock);
	for (p = b->processes; p; p = p->next)
		if (tag ? str_eq(p->tag, tag) : p->pid == pid)
			break;
	if (p)
		p->refs++;
	pthread_mutex_unlock(&b->lock);
	return p;
}

/* Whether it still runs. Called with the lock held. */
static bool is_listed(const struct e2b_process *p)
{
	for (const struct e2b_process *q = p->sandbox->processes; q; q = q->next)
		if (q == p)
			return true;
	return false;
}

int e2b_process_follow(struct e2b_process *p, struct httpd_exchange *x,
		       struct cordon_error **reterr)
{
	struct e2b_follower *f = follower_new(x);
	unsigned count = 0;
	int r = 0;

	if (!f)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	pthread_mutex_lock(&p->sandbox->lock);
	for (const struct e2b_follower *g = p->followers; g; g = g->next)
		count++;
	if (!is_listed(p))
		r = err_set(reterr, CORDON_NOT_FOUND, "the process has ended");
	else if (count >= E2B_FOLLOWERS_MAX)
		r = err_set(reterr, CORDON_LIMIT, "%d connections follow this process already",
			    E2B_FOLLOWERS_MAX);
	if (r == 0) {
		/* A new stream has room, so this does not wait; nothing comes before it. */
		connect_rpc_begin(x);
		(void)connect_rpc_send(x, start_event(p->pid));
		f->next = p->followers;
		p->followers = f;
	}
	pthread_mutex_unlock(&p->sandbox->lock);
	if (r < 0)
		follower_free(f);
	return r;
}

int e2b_process_kill(struct e2b_process *p, struct cordon_error **reterr)
{
	pthread_mutex_lock(&p->sandbox->lock);
	p->is_killed = is_listed(p);
	pthread_mutex_unlock(&p->sandbox->lock);
	return cordon_process_kill(p->sandbox->session, p->number, reterr);
}

void e2b_process_ping_all(struct e2b_sandbox *b)
{
	static const char text[] = "{\"event\":{\"keepalive\":{}}}";
	size_t len = 0;
	cleanup_free char *frame = connect_rpc_frame(0, text, sizeof(text) - 1, &len);

	pthread_mutex_lock(&b->lock);
	for (struct e2b_process *p = b->processes; p && frame; p = p->next)
		for (struct e2b_follower *f = p->followers; f; f = f->next)
			if (f->ping_ms && deadline_is_over(f->ping)) {
				(void)httpd_stream_offer(f->x, frame, len);
				f->ping = deadline_after_ms(f->ping_ms);
			}
	pthread_mutex_unlock(&b->lock);
}

void e2b_process_cut_all(struct e2b_sandbox *b)
{
	pthread_mutex_lock(&b->lock);
	for (struct e2b_process *p = b->processes; p; p = p->next)
		for (struct e2b_follower *f = p->followers; f; f = f->next)
			httpd_stream_end(f->x, false);
	pthread_mutex_unlock(&b->lock);
}

void e2b_process_end_all(struct e2b_sandbox *b)
{
	pthread_mutex_lock(&b->lock);
	for (struct e2b_process *p = b->processes; p; p = p->next) {
		/* A thread that waits for a slow client must not hold the end up. */
		for (struct e2b_follower *f = p->followers; f; f = f->next)
			httpd_stream_end(f->x, false);
		(void)cordon_process_kill(b->session, p->number, NULL);
	}
	pthread_mutex_unlock(&b->lock);
}
