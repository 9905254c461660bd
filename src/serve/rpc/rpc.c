/* serve/rpc/rpc.c - see rpc.h. The threads of one client, from a line to a method and back. */
#include "serve/rpc/rpc.h"

#include <cordon/cordon.h>
#include <errno.h>
#include <string.h>

#include "base/condvar.h"
#include "base/mem.h"
#include "base/str.h"
#include "serve/rpc/reply.h"
#include "serve/rpc/target.h"

enum { SPARE_THREADS = 4, IDLE_MS = 200, STALL_MS = 60000 };

#define NO_READER                                                                                  \
	"no thread could be started to read requests: raise the limit on processes, or the memory"

bool rpc_notify(struct rpc *c, const char *method, const char *params, size_t len)
{
	const struct sink_message m = { .method = method, .params = params, .len = len };

	return c->sink.send(&m, c->sink.arg);
}

static void request_free(struct request *q)
{
	if (q->has_begun)
		client_session_end(&q->rpc->sessions, q->cs);
	if (q->loan)
		cordon_pool_release(q->cs->pool, q->loan);
	if (q->makes_home) /* it was refused */
		target_fail_home(q);
	client_session_put(&q->rpc->sessions, q->cs);
	attachment_done(&q->attachment);
	attachment_done(&q->answer);
	json_decref(q->message);
	free(q);
}

static int run_method(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const struct rpc_hooks *h = &q->rpc->hooks;
	void *execution = NULL;

	if (!h->begin || !(q->method->flags & RPC_CODE))
		return q->method->fn(q, ret, reterr);
	int r = h->begin(q, &execution, h->arg, reterr);
	if (r < 0)
		return r;
	r = q->method->fn(q, ret, reterr);
	h->end(execution, r == 0 ? buf_text(ret) : NULL, reterr ? *reterr : NULL, h->arg);
	return r;
}

/* Runs the method and answers. */
static void carry_out(struct request *q)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_buf struct buf result = { 0 };

	buf_init(&result, SIZE_MAX / 2);
	int r = run_method(q, &result, &e);
	attachment_done(&q->attachment);
	if (q->has_begun) { /* before the answer: after it, the client may send the next request */
		client_session_end(&q->rpc->sessions, q->cs);
		q->has_begun = false;
	}
	if (q->id && r == 0)
		reply_result(&q->rpc->out, q->id, buf_text(&result), result.len, q->answer.fd,
			     q->answer.bytes);
	else if (q->id)
		reply_failure(&q->rpc->out, q->id, e, q->is_pod_style);
}

/* Methods that end something have as many places again, because all others may be waiting for
 * them. */
static bool take_place(struct rpc *c, const struct rpc_method *m)
{
	pthread_mutex_lock(&c->lock);
	bool fits = c->busy < RPC_REQUESTS_MAX * (m->flags & RPC_ENDS ? 2U : 1U);
	if (fits)
		c->busy++;
	pthread_mutex_unlock(&c->lock);
	return fits;
}

static void leave_place(struct rpc *c)
{
	pthread_mutex_lock(&c->lock);
	c->busy--;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

/* The method that a request names, or NULL after answering. Invalid notifications are not answered,
 * unless the message may not be a notification at all. */
static const struct rpc_method *check_request(struct rpc *c, const json_t *message,
					      const json_t *id, const json_t *params)
{
	const char *name = json_string_value(json_object_get(message, "method"));
	const char *version = json_string_value(json_object_get(message, "jsonrpc"));
	bool has_id = json_is_string(id) || json_is_number(id);

	if (!name || !str_eq(version, "2.0") || (id && !has_id)) {
		if (has_id)
			reply_error(&c->out, id, -32600, "not a request of JSON-RPC 2.0");
		else
			reply_unread(&c->out, c->lines, -32600, "not a request of JSON-RPC 2.0");
		return NULL;
	}
	const struct rpc_method *m = rpc_find_method(name);
	if (!m && id) {
		cleanup_free char *text = str_printf("unknown method '%.100s'", name);
		reply_error(&c->out, id, -32601, text ? text : "unknown method");
	}
	if (m && params && !json_is_object(params)) {
		if (id)
			reply_error(&c->out, id, -32602, "params must be an object: by name");
		return NULL;
	}
	return m;
}

/* Finds the target of a request and marks the beginning of an execution. */
static int aim(struct request *q, struct cordon_error **reterr)
{
	const struct rpc_hooks *h = &q->rpc->hooks;
	int r = target_check_params(q, reterr);

	if (r == 0 && h->permit)
		r = h->permit(q->method, q->params, h->arg, reterr);
	if (r == 0)
		r = target_find(q, reterr);
	if (r == 0 && (q->method->flags & RPC_EXECUTE) && !target_names_context(q)) {
		r = client_session_begin(&q->rpc->sessions, q->cs, q->id, reterr);
		q->has_begun = r == 0;
	}
	return r;
}

/* Makes a request from a message, with its method and target; NULL after answering. The request
 * takes the message over: another thread may carry it out and free it. */
static struct request *request_new(struct rpc *c, json_t **taken)
{
	cleanup_error struct cordon_error *e = NULL;
	json_t *message = *taken;
	json_t *id = json_object_get(message, "id"), *params = json_object_get(message, "params");
	cleanup_attachment struct attachment attached = c->attachment;

	c->attachment = (struct attachment)ATTACHMENT_NONE;
	if (json_is_null(params))
		params = NULL;
	const struct rpc_method *m = check_request(c, message, id, params);
	if (!m)
		return NULL;
	struct request *q = mem_alloc(sizeof(*q));
	if (!q)
		return NULL;
	*q = (struct request){
		.rpc = c,
		.method = m,
		.message = TAKE_PTR(*taken),
		.id = id,
		.params = params,
		.attachment = attached,
		.answer = ATTACHMENT_NONE,
	};
	attached = (struct attachment)ATTACHMENT_NONE;
	if (aim(q, &e) == 0)
		return q;
	if (id)
		reply_failure(&c->out, id, e, q->is_pod_style);
	request_free(q);
	return NULL;
}

void rpc_leave(struct rpc *c)
{
	pthread_mutex_lock(&c->lock);
	c->threads--;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

bool rpc_start_thread(struct rpc *c, void *(*fn)(void *), struct request *q)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_mutex_lock(&c->lock);
	c->threads++;
	pthread_mutex_unlock(&c->lock);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	bool good = pthread_create(&thread, &attr, fn, q ? (void *)q : (void *)c) == 0;
	pthread_attr_destroy(&attr);
	if (!good)
		rpc_leave(c);
	return good;
}

static void finish_request(struct request *q)
{
	struct rpc *c = q->rpc;

	carry_out(q);
	leave_place(c);
	request_free(q);
}

static void *request_thread(void *arg)
{
	struct rpc *c = ((struct request *)arg)->rpc;

	finish_request(arg);
	rpc_leave(c);
	return NULL;
}

/* The request has its session, so it gets a place even if all are taken. */
void rpc_carry_on(struct request *q)
{
	pthread_mutex_lock(&q->rpc->lock);
	q->rpc->busy++;
	pthread_mutex_unlock(&q->rpc->lock);
	if (!rpc_start_thread(q->rpc, request_thread, q))
		finish_request(q);
}

void rpc_refuse(struct request *q, const struct cordon_error *e)
{
	if (q->id)
		reply_failure(&q->rpc->out, q->id, e, q->is_pod_style);
	request_free(q);
}

bool rpc_has_id(const struct request *q, const json_t *id)
{
	return q->id && json_equal(q->id, id);
}

static void *serve_thread(void *arg);

enum reading { READING_ON, READING_PARKED, READING_OVER };

/* True if another thread waits to read, or could be started. False: this thread must read on
 * alone. */
static bool has_follower(struct rpc *c)
{
	if (c->is_alone)
		return false;
	pthread_mutex_lock(&c->lock);
	bool good = c->waiting > 0;
	if (!good)
		c->waiting++; /* counted for the new thread */
	pthread_mutex_unlock(&c->lock);
	if (good)
		return true;
	good = rpc_start_thread(c, serve_thread, NULL);
	if (!good) {
		pthread_mutex_lock(&c->lock);
		c->waiting--;
		pthread_mutex_unlock(&c->lock);
	}
	return good;
}

/* Gets a session for a request that needs one from a pool. False: it waits, or was answered. */
static bool find_loan(struct request *q)
{
	cleanup_error struct cordon_error *e = NULL;
	uint64_t wait_ms = 0;

	if (!(q->method->flags & RPC_WAITS) || q->rpc->is_alone)
		return true;
	int r = target_uint(q, "wait_ms", &wait_ms, &e);
	if (r == 0)
		r = waitlist_take(q, wait_ms, &e);
	if (r < 0)
		rpc_refuse(q, e);
	return r > 0;
}

/* Handles one request. *ret_reading: this thread is still the reader. False: it was the last. */
static bool handle(struct rpc *c, json_t **taken, bool *ret_reading)
{
	struct request *q = request_new(c, taken);
	bool goes_on;

	if (!q || !find_loan(q))
		return true;
	goes_on = !(q->method->flags & RPC_LAST);
	if ((q->method->flags & RPC_SLOW) && !take_place(c, q->method)) {
		if (q->id)
			reply_error(&c->out, q->id, cordon_code_rpc(CORDON_LIMIT),
				    "too many requests at once");
		request_free(q);
		return true;
	}
	if ((q->method->flags & RPC_SLOW) && has_follower(c)) {
		*ret_reading = false;
		pthread_mutex_unlock(&c->reading);
	}
	bool is_unread = *ret_reading && (q->method->flags & RPC_SLOW);
	if (is_unread)
		c->callbacks.nobody_reads = true;
	carry_out(q);
	if (is_unread)
		c->callbacks.nobody_reads = false;
	if (q->method->flags & RPC_SLOW)
		leave_place(c);
	request_free(q);
	return goes_on;
}

static bool take_message(struct rpc *c, json_t **taken, bool *ret_reading)
{
	json_t *message = *taken;

	if (!json_is_object(message)) {
		reply_unread(&c->out, c->lines, -32600, "a message is one JSON object");
		return true;
	}
	if (json_object_get(message, "method"))
		return handle(c, taken, ret_reading);
	if (!callback_answer(&c->callbacks, message) && !json_object_get(message, "result") &&
	    !json_object_get(message, "error"))
		reply_error(&c->out, json_object_get(message, "id"), -32600,
			    "neither a request nor an answer");
	return true;
}

static bool take_line(struct rpc *c, const char *line, size_t len, bool *ret_reading)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *message = NULL;

	if (strspn(line, " \t\r") >= len)
		return true;
	if (json_parse(line, len, 0, &message, &e) < 0) {
		reply_unread(&c->out, c->lines, -32700, cordon_error_message(e));
		return true;
	}
	if (c->in.fd >= 0 && !attachment_read(&c->in, message, target_value_bytes(c, message),
					      c->sessions.quota, &c->attachment))
		return false;
	return take_message(c, &message, ret_reading);
}

/* Nothing comes: no thread reads any more until rpc_wake. */
static void park(struct rpc *c)
{
	linein_shrink(&c->in);
	pthread_mutex_lock(&c->lock);
	c->is_parked = true;
	pthread_mutex_unlock(&c->lock);
	pthread_mutex_unlock(&c->reading);
	c->hooks.parked(c->hooks.arg);
}

/* Reads lines until one of them takes this thread away from reading. */
static enum reading read_lines(struct rpc *c)
{
	bool is_reading = true, goes_on = true;
	size_t len;
	char *line;

	while (is_reading && goes_on) {
		switch (linein_next(&c->in, &line, &len)) {
		case LINE_IDLE:
			park(c);
			return READING_PARKED;
		case LINE_OK:
			c->lines++;
			goes_on = take_line(c, line, len, &is_reading);
			break;
		case LINE_TOO_LONG:
			reply_unread(&c->out, ++c->lines, -32700, "Request too large");
			break;
		case LINE_END:
			c->is_at_end = !c->out.is_duplex;
			goes_on = false;
			break;
		}
	}
	if (!goes_on) {
		pthread_mutex_lock(&c->lock);
		c->is_over = true;
		pthread_cond_broadcast(&c->changed);
		pthread_mutex_unlock(&c->lock);
	}
	if (is_reading)
		pthread_mutex_unlock(&c->reading);
	return goes_on ? READING_ON : READING_OVER;
}

static bool become_reader(struct rpc *c)
{
	pthread_mutex_lock(&c->reading);
	pthread_mutex_lock(&c->lock);
	c->waiting--;
	bool is_over = c->is_over || c->is_parked;
	pthread_mutex_unlock(&c->lock);
	if (is_over)
		pthread_mutex_unlock(&c->reading);
	return !is_over;
}

/* After a request: waits to read again, unless enough other threads do. */
static bool stay(struct rpc *c)
{
	pthread_mutex_lock(&c->lock);
	bool stays = c->waiting < SPARE_THREADS && !c->is_parked;
	if (stays)
		c->waiting++;
	pthread_mutex_unlock(&c->lock);
	return stays;
}

static void *serve_thread(void *arg)
{
	struct rpc *c = arg;
	enum reading state = READING_ON;

	while (state == READING_ON && become_reader(c)) {
		state = read_lines(c);
		if (state == READING_ON && !stay(c))
			break;
	}
	struct rpc_hooks hooks = c->hooks;
	rpc_leave(c);
	/* Only this thread knows that it is over, so nobody else ends it meanwhile. */
	if (state == READING_OVER && hooks.over)
		hooks.over(hooks.arg);
	return NULL;
}

bool rpc_wake(struct rpc *c)
{
	pthread_mutex_lock(&c->lock);
	c->is_parked = false;
	pthread_mutex_unlock(&c->lock);
	if (has_follower(c))
		return true;
	pthread_mutex_lock(&c->lock);
	c->is_parked = true;
	pthread_mutex_unlock(&c->lock);
	return false;
}

struct rpc *rpc_new(const struct rpc_options *o)
{
	struct rpc *c = mem_alloc(sizeof(*c));

	if (!c)
		return NULL;
	linein_init(&c->in, o->in_fd, o->out_fd, RPC_LINE_MAX);
	lineout_init(&c->out, o->out_fd);
	client_sessions_init(&c->sessions);
	c->hooks = o->hooks ? *o->hooks : (struct rpc_hooks){ 0 };
	c->is_alone = c->is_parked = true;
	if (c->hooks.parked) {
		c->is_alone = false;
		c->out.is_duplex = true;
		c->in.idle_ms = IDLE_MS;
		c->in.stall_ms = c->out.stall_ms = STALL_MS;
	}
	c->sink = o->sink ? *o->sink : (struct sink){ .send = sink_send_line, .arg = &c->out };
	c->sessions.max = o->sessions ? o->sessions : (unsigned)CLIENT_SESSION_SESSIONS_MAX;
	callbacks_init(&c->callbacks, &c->sink, &c->sessions);
	waitlist_init(&c->waits);
	c->policy = o->policy;
	c->is_shared = o->is_shared;
	if (o->storage)
		c->storage = *o->storage;
	c->is_limited = o->is_limited;
	c->sessions.quota = o->quota;
	c->program = o->program;
	c->attachment = (struct attachment)ATTACHMENT_NONE;
	pthread_mutex_init(&c->reading, NULL);
	pthread_mutex_init(&c->lock, NULL);
	condvar_init(&c->changed);
	return c;
}

bool rpc_take_line(struct rpc *c, const char *line, size_t len)
{
	bool is_reading = true;

	c->lines++;
	if (len <= RPC_LINE_MAX)
		return take_line(c, line, len, &is_reading);
	reply_unread(&c->out, c->lines, -32700, "Request too large");
	return true;
}

int rpc_run(struct rpc *c, const struct rpc_call *call, struct buf *ret,
	    struct cordon_error **reterr)
{
	const struct rpc_method *m = rpc_find_method(call->method);
	struct request *q = m ? mem_alloc(sizeof(*q)) : NULL;

	if (!q)
		return err_set(reterr, m ? CORDON_NOMEM : CORDON_INVALID, "no method '%s'",
			       call->method);
	*q = (struct request){
		.rpc = c,
		.method = m,
		.id = call->id,
		.params = call->params,
		.attachment = ATTACHMENT_NONE,
		.answer = ATTACHMENT_NONE,
	};
	bool has_place = take_place(c, m);
	int r = has_place ? aim(q, reterr)
			  : err_set(reterr, CORDON_LIMIT, "too many requests at once");
	if (r == 0)
		r = m->fn(q, ret, reterr);
	request_free(q);
	if (has_place)
		leave_place(c);
	return r;
}

void rpc_turn_away(int fd)
{
	struct lineout out;

	lineout_init(&out, fd);
	reply_unread(&out, 1, cordon_code_rpc(CORDON_OS), NO_READER);
	lineout_done(&out);
}

int rpc_serve(const struct rpc_options *o, struct cordon_error **reterr)
{
	struct rpc *c = rpc_new(o);

	if (!c)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	/* This thread runs no requests, so that it can end what does not end by itself. */
	c->is_alone = false;
	if (!rpc_wake(c)) {
		rpc_turn_away(o->out_fd);
		rpc_done(c);
		return err_set(reterr, CORDON_OS, "%s", NO_READER);
	}
	pthread_mutex_lock(&c->lock);
	while (!c->is_over)
		pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
	return rpc_finish(c, reterr);
}
