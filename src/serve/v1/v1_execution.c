/* serve/v1/v1_execution.c - executions: answered at once, or as a stream of events. */
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "serve/http/problem.h"
#include "serve/http/sse.h"
#include "serve/rpc/execution_language.h"
#include "serve/server/activity.h"
#include "serve/server/idempotency.h"
#include "serve/server/parking.h"
#include "serve/server/server.h"
#include "serve/v1/v1.h"

/* One running request. */
struct run {
	struct server *server;
	struct tenant *tenant;
	struct httpd_exchange *x;
	struct activity *activity;
	json_t *params;
	char id[ACTIVITY_ID_BYTES];
	struct buf result;
	struct cordon_error *error;
	const char *key; /* Idempotency-Key; NULL: none */
	unsigned status; /* instead of that of the error; 0: that */
	bool is_stream, has_begun;
};

/* CANCEL_MS: longer than a session takes to come back. */
enum { CANCEL_MS = 120000, CANCEL_ASKED_MS = 1000, CANCEL_PAUSE_NS = 10000000 };

struct cancel {
	struct tenant *tenant;
	char id[ACTIVITY_ID_BYTES];
};

/* The client knows an execution before it begins in its session, where cancelling finds it: so this
 * is repeated until it was cancelled, or is over. */
static int cancel_id(struct tenant *t, const char *id, deadline_ns until, struct buf *ret,
		     struct cordon_error **reterr)
{
	cleanup_json json_t *params = json_pack("{s:s}", "request_id", id);

	if (!params)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	for (;;) {
		buf_clear(ret);
		int r = tenant_call(t, "cancel", params, NULL, ret, reterr);
		if (r < 0 || strstr(buf_text(ret), "true") || !activity_is_running(t, id) ||
		    deadline_is_over(until))
			return r;
		(void)nanosleep(&(struct timespec){ .tv_nsec = CANCEL_PAUSE_NS }, NULL);
	}
}

static void cancel_later(void *arg)
{
	cleanup_free struct cancel *c = arg;
	cleanup_buf struct buf ignored = { 0 };

	buf_init(&ignored, SIZE_MAX / 2);
	(void)cancel_id(c->tenant, c->id, deadline_after_ms(CANCEL_MS), &ignored, NULL);
}

/* The client is gone, so nobody gets the result. Cancelling waits, which this thread must not. */
static void on_left(void *arg)
{
	struct run *run = arg;
	struct cancel *c = mem_alloc(sizeof(*c));

	if (!c)
		return;
	c->tenant = run->tenant;
	memcpy(c->id, run->id, sizeof(c->id));
	if (!workers_run(run->server->later, cancel_later, c))
		free(c);
}

static void answer(struct run *run, int r)
{
	if (r < 0 && run->status)
		problem_answer_as(run->x, run->status, "invalid", cordon_error_message(run->error),
				  "use another key for another request");
	else if (r < 0)
		problem_answer(run->x, run->error);
	else
		httpd_answer(run->x, 200, "application/json", run->result.data, run->result.len);
}

/* Rich outputs come as events of their own; the result has them, too. */
static void send_outputs(struct run *run)
{
	cleanup_json json_t *result = NULL;
	json_t *one;
	size_t i;

	if (strstr(buf_text(&run->result), "\"outputs\": [],") ||
	    json_parse(run->result.data, run->result.len, 0, &result, NULL) < 0)
		return;
	json_array_foreach(json_object_get(result, "outputs"), i, one)
	{
		size_t len = 0;
		cleanup_free char *text = json_text(one, &len);
		if (text)
			(void)sse_send(run->x, "output", text, len);
	}
}

/* The last event: the result, or why there is none. */
static void end_stream(struct run *run, int r)
{
	unsigned status;

	if (r == 0)
		send_outputs(run);
	cleanup_free char *problem = r < 0 ? problem_text(run->error, &status) : NULL;
	bool good = r < 0 ? problem && sse_send(run->x, "problem", problem, strlen(problem))
			  : sse_send(run->x, "result", run->result.data, run->result.len);

	httpd_stream_end(run->x, good);
}

static void begin_stream(struct run *run)
{
	cleanup_free char *text = str_printf("{\"execution\":\"%s\"}", run->id);

	httpd_stream_begin(run->x, 200, "text/event-stream");
	run->has_begun = true;
	if (text)
		(void)sse_send(run->x, "started", text, strlen(text));
}

/* The result says what was lost, among its warnings. */
static void add_notice(struct run *run)
{
	cleanup_json json_t *result = NULL;

	if (json_parse(run->result.data, run->result.len, 0, &result, NULL) < 0)
		return;
	json_t *warnings = json_object_get(result, "warnings");
	if (!json_is_array(warnings) ||
	    json_array_append_new(warnings, json_string(PARKING_NOTICE)) != 0)
		return;
	size_t len = 0;
	cleanup_free char *text = json_text(result, &len);
	if (!text)
		return;
	buf_clear(&run->result);
	(void)buf_add(&run->result, text, len);
}

/* NULL: there is no such session or pool. */
static const char *language_of(const struct run *run, const char *session)
{
	struct client_sessions *all = &run->tenant->rpc->sessions;
	const char *pool = json_string_value(json_object_get(run->params, "pool"));
	struct client_session *cs = NULL;

	if (session)
		cs = client_session_get(all, session, CLIENT_SESSION_SESSION);
	else if (pool)
		cs = client_session_get(all, pool, CLIENT_SESSION_POOL);
	if ((session || pool) && !cs)
		return NULL;
	const char *language = execution_language_find(all, cs, run->params);
	if (cs)
		client_session_put(all, cs);
	return language;
}

static int run_code(struct run *run, const char *method)
{
	const char *session = json_string_value(json_object_get(run->params, "session"));
	char kind[24];

	int r = v1_wake(run->x, run->params, &run->error);
	if (r < 0)
		return r;
	const struct activity_options o = { .session = session ? session : "",
					    .language = language_of(run, session),
					    .stream = run->is_stream ? run->x : NULL,
					    .parent = httpd_trace(run->x) };
	r = activity_begin(run->tenant, &o, &run->activity, &run->error);
	if (r < 0)
		return r;
	memcpy(run->id, run->activity->id, sizeof(run->id));
	httpd_add_header(run->x, "Cordon-Execution", run->id);
	if (!run->key) /* otherwise the client may ask for the result again */
		httpd_watch(run->x, on_left, run);
	if (run->is_stream) {
		begin_stream(run);
		json_object_set_new(run->params, "stream", json_true());
	}
	r = tenant_call(run->tenant, method, run->params, run->id, &run->result, &run->error);
	httpd_unwatch(run->x);
	const char *result = r == 0 ? buf_text(&run->result) : NULL;
	activity_end(run->tenant, run->activity,
		     activity_outcome(result, run->error, kind, sizeof(kind)), result);
	if (r == 0 && session && parking_take_notice(run->tenant, session))
		add_notice(run);
	return r;
}

/* Runs it, or finds the answer to the same request before. */
static int run_once(struct run *run, const char *method)
{
	size_t len;
	const char *body = httpd_body(run->x, &len);
	cleanup_buf struct buf request = { 0 };
	cleanup_free char *known = NULL;

	buf_init(&request, SIZE_MAX / 2);
	if (buf_printf(&request, "%s\n", httpd_path(run->x)) < 0 ||
	    buf_add(&request, body, len) < 0)
		return err_set(&run->error, CORDON_NOMEM, "out of memory");
	switch (idempotency_begin(run->tenant, run->key, request.data, request.len, &known)) {
	case IDEMPOTENCY_KNOWN:
		httpd_add_header(run->x, "Idempotency-Replayed", "true");
		if (run->is_stream)
			httpd_stream_begin(run->x, 200, "text/event-stream");
		run->has_begun = run->is_stream;
		return buf_add_str(&run->result, known);
	case IDEMPOTENCY_OTHER:
		run->status = 422;
		return err_set(
			&run->error, CORDON_INVALID,
			"this Idempotency-Key was used for a different request: choose a new one");
	case IDEMPOTENCY_FULL:
		return err_set(&run->error, CORDON_LIMIT,
			       "too many requests with an Idempotency-Key are running: wait for "
			       "one to end");
	case IDEMPOTENCY_NEW:
		break;
	}
	int r = run_code(run, method);
	idempotency_end(run->tenant, run->key, r == 0 ? buf_text(&run->result) : NULL);
	return r;
}

void v1_execute(struct httpd_exchange *x, void *server)
{
	const struct v1_method *m = httpd_route_of(x)->detail;
	struct run run = {
		.server = server, .tenant = httpd_tenant(x), .x = x, .is_stream = sse_is_wanted(x)
	};

	buf_init(&run.result, SIZE_MAX / 2);
	int r = v1_read_params(x, m, &run.params, &run.error);
	if (r == 0 && m->check)
		r = m->check(run.tenant, run.params, &run.error);
	run.key = httpd_header(x, "Idempotency-Key");
	if (r == 0)
		r = run.key ? run_once(&run, m->method) : run_code(&run, m->method);
	if (run.has_begun)
		end_stream(&run, r);
	else
		answer(&run, r);
	json_decref(run.params);
	cordon_error_free(run.error);
	buf_done(&run.result);
}

void v1_list_executions(struct httpd_exchange *x, void *server)
{
	cleanup_json json_t *list = activity_list(httpd_tenant(x), httpd_param(x, "session"));
	cleanup_json json_t *answer = json_pack("{s:O}", "executions", list);

	(void)server;
	v1_answer_json(x, 200, answer);
}

void v1_show_execution(struct httpd_exchange *x, void *server)
{
	const char *id = httpd_param(x, "execution");
	cleanup_json json_t *found = activity_find(httpd_tenant(x), httpd_param(x, "session"), id);

	(void)server;
	if (found)
		v1_answer_json(x, 200, found);
	else
		problem_answer_as(x, 404, "not_found", "there is no such execution", NULL);
}

void v1_cancel_execution(struct httpd_exchange *x, void *server)
{
	struct tenant *t = httpd_tenant(x);
	const char *session = httpd_param(x, "session"), *id = httpd_param(x, "execution");
	cleanup_json json_t *found = activity_find(t, session, id);
	cleanup_error struct cordon_error *e = NULL;
	cleanup_buf struct buf result = { 0 };

	(void)server;
	buf_init(&result, SIZE_MAX / 2);
	if (!found) {
		problem_answer_as(x, 404, "not_found", "there is no such execution", NULL);
		return;
	}
	activity_hurry(t, session, id);
	if (cancel_id(t, id, deadline_after_ms(CANCEL_ASKED_MS), &result, &e) < 0)
		problem_answer(x, e);
	else
		httpd_answer(x, 200, "application/json", result.data, result.len);
}
