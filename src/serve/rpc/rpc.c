/* serve/rpc/rpc.c - see rpc.h. The threads of one client, from a line to a method and back. */
#include "serve/rpc/rpc.h"

#include <cordon/cordon.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/condvar.h"
#include "base/mem.h"
#include "base/str.h"
#include "serve/rpc/prove_methods.h"
#include "serve/rpc/reply.h"
#include "serve/rpc/target.h"

/* END_MS: long enough to save a workspace to a slow disk at the end. */
enum { SPARE_THREADS = 4, CLOSERS = 4, END_MS = 30000, LOOK_MS = 50 };

#define NO_READER                                                                                  \
	"no thread could be started to read requests: raise the limit on processes, or the memory"

static const struct rpc_method *const tables[] = {
	rpc_session_methods, rpc_files_methods,   rpc_workspace_methods, rpc_pool_methods,
	rpc_machine_methods, rpc_sandbox_methods, rpc_move_methods,      rpc_archive_methods,
	rpc_pod_methods,     rpc_proof_methods,   rpc_fetch_methods,
};

enum { TABLES = sizeof(tables) / sizeof(*tables) };

static const struct rpc_method *find_method(const char *name)
{
	for (size_t i = 0; i < TABLES; i++)
		for (const struct rpc_method *m = tables[i]; m->name; m++)
			if (str_eq(m->name, name))
				return m;
	return NULL;
}

void rpc_visit_methods(void (*fn)(const struct rpc_method *m, void *arg), void *arg)
{
	for (size_t i = 0; i < TABLES; i++)
		for (const struct rpc_method *m = tables[i]; m->name; m++)
			fn(m, arg);
}

bool rpc_notify(struct rpc *c, const char *method, const char *params, size_t len)
{
	return reply_notify(&c->out, method, params, len);
}

static void request_free(struct request *q)
{
	if (q->has_begun)
		client_session_end(&q->rpc->sessions, q->cs);
	if (q->loan)
		cordon_pool_release(q->cs->pool, q->loan);
	client_session_put(&q->rpc->sessions, q->cs);
	json_decref(q->message);
	free(q);
}

/* Runs the method and answers. */
static void carry_out(struct request *q)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_buf struct buf result = { 0 };

	buf_init(&result, SIZE_MAX / 2);
	int r = q->method->fn(q, &result, &e);
	if (q->has_begun) { /* before the answer: after it, the client may send the next request */
		client_session_end(&q->rpc->sessions, q->cs);
		q->has_begun = false;
	}
	if (q->id && r == 0)
		reply_result(&q->rpc->out, q->id, buf_text(&result), result.len);
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
	const struct rpc_method *m = find_method(name);
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

/* Makes a request from a message, with its method and target; NULL after answering. */
static struct request *request_new(struct rpc *c, json_t *message)
{
	cleanup_error struct cordon_error *e = NULL;
	json_t *id = json_object_get(message, "id"), *params = json_object_get(message, "params");

	if (json_is_null(params))
		params = NULL;
	const struct rpc_method *m = check_request(c, message, id, params);
	if (!m)
		return NULL;
	struct request *q = mem_alloc(sizeof(*q));
	if (!q)
		return NULL;
	*q = (struct request){
		.rpc = c, .method = m, .message = json_incref(message), .id = id, .params = params
	};
	int r = target_check_params(q, &e);
	if (r == 0)
		r = target_find(q, &e);
	if (r == 0 && (m->flags & RPC_EXECUTE)) {
		r = client_session_begin(&c->sessions, q->cs, id, &e);
		q->has_begun = r == 0;
	}
	if (r == 0)
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
static bool handle(struct rpc *c, json_t *message, bool *ret_reading)
{
	struct request *q = request_new(c, message);
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

static bool take_message(struct rpc *c, json_t *message, bool *ret_reading)
{
	if (!json_is_object(message)) {
		reply_unread(&c->out, c->lines, -32600, "a message is one JSON object");
		return true;
	}
	if (json_object_get(message, "method"))
		return handle(c, message, ret_reading);
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
	return take_message(c, message, ret_reading);
}

/* Reads lines until one of them takes this thread away from reading. */
static bool read_lines(struct rpc *c)
{
	bool is_reading = true, goes_on = true;
	size_t len;
	char *line;

	while (is_reading && goes_on) {
		switch (linein_next(&c->in, &line, &len)) {
		case LINE_OK:
			c->lines++;
			goes_on = take_line(c, line, len, &is_reading);
			break;
		case LINE_TOO_LONG:
			reply_unread(&c->out, ++c->lines, -32700, "Request too large");
			break;
		case LINE_END:
			c->is_at_end = true;
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
	return goes_on;
}

static bool become_reader(struct rpc *c)
{
	pthread_mutex_lock(&c->reading);
	pthread_mutex_lock(&c->lock);
	c->waiting--;
	bool is_over = c->is_over;
	pthread_mutex_unlock(&c->lock);
	if (is_over)
		pthread_mutex_unlock(&c->reading);
	return !is_over;
}

/* After a request: waits to read again, unless enough other threads do. */
static bool stay(struct rpc *c)
{
	pthread_mutex_lock(&c->lock);
	bool stays = c->waiting < SPARE_THREADS;
	if (stays)
		c->waiting++;
	pthread_mutex_unlock(&c->lock);
	return stays;
}

static void *serve_thread(void *arg)
{
	struct rpc *c = arg;

	while (become_reader(c) && read_lines(c) && stay(c))
		;
	rpc_leave(c);
	return NULL;
}

static void *end_sessions(void *arg)
{
	struct rpc *c = arg;

	client_sessions_close(&c->sessions);
	rpc_leave(c);
	return NULL;
}

/* Several threads, because closing a session takes milliseconds. */
static void start_closers(struct rpc *c)
{
	pthread_t thread;

	callbacks_close(&c->callbacks);
	waitlist_close(c);
	(void)proof_cancel(c, NULL);
	pthread_mutex_lock(&c->lock);
	struct client_session *home = TAKE_PTR(c->home);
	c->threads += CLOSERS;
	pthread_mutex_unlock(&c->lock);
	client_session_put(&c->sessions, home);
	for (int i = 0; i < CLOSERS; i++) {
		if (pthread_create(&thread, NULL, end_sessions, c) == 0)
			(void)pthread_detach(thread);
		else
			(void)end_sessions(c);
	}
}

/* Answers requests that came before the input ended, as long as someone reads the answers. Requests
 * that wait for an answer of the client fail. */
static void answer_the_rest(struct rpc *c)
{
	callbacks_close(&c->callbacks);
	client_sessions_drain(&c->sessions);
	pthread_mutex_lock(&c->lock);
	while (c->busy > 0 && lineout_has_reader(&c->out))
		(void)condvar_wait(&c->changed, &c->lock, deadline_after_ms(LOOK_MS));
	pthread_mutex_unlock(&c->lock);
}

/* Ends everything within END_MS. */
static int end(struct rpc *c, struct cordon_error **reterr)
{
	deadline_ns deadline = deadline_after_ms(END_MS);

	/* A thread that writes to a client which does not read must not block the others. */
	(void)shutdown(c->out.fd, SHUT_RDWR);
	start_closers(c);
	pthread_mutex_lock(&c->lock);
	while (c->threads > 0 && condvar_wait(&c->changed, &c->lock, deadline))
		;
	bool is_quiet = c->threads == 0;
	pthread_mutex_unlock(&c->lock);
	return is_quiet ? 0
			: err_set(reterr, CORDON_TIMEOUT, "not everything ended within %d ms",
				  END_MS);
}

struct rpc *rpc_new(const struct rpc_options *o)
{
	struct rpc *c = mem_alloc(sizeof(*c));

	if (!c)
		return NULL;
	linein_init(&c->in, o->in_fd, o->out_fd, RPC_LINE_MAX);
	lineout_init(&c->out, o->out_fd);
	client_sessions_init(&c->sessions);
	callbacks_init(&c->callbacks, &c->out, &c->sessions);
	waitlist_init(&c->waits);
	c->policy = o->policy;
	c->program = o->program;
	c->is_alone = true;
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

static void rpc_done(struct rpc *c)
{
	linein_done(&c->in);
	lineout_done(&c->out);
	callbacks_done(&c->callbacks);
	waitlist_done(&c->waits);
	client_sessions_done(&c->sessions);
	pthread_mutex_destroy(&c->reading);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	free(c);
}

void rpc_free(struct rpc *c)
{
	callbacks_close(&c->callbacks);
	client_session_put(&c->sessions, TAKE_PTR(c->home));
	client_sessions_close(&c->sessions);
	rpc_done(c);
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
	c->is_alone = false;
	/* This thread runs no requests, so that it can end what does not end by itself. */
	if (!has_follower(c)) {
		rpc_turn_away(o->out_fd);
		rpc_done(c);
		return err_set(reterr, CORDON_OS, "%s", NO_READER);
	}
	pthread_mutex_lock(&c->lock);
	while (!c->is_over)
		pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
	if (c->is_at_end)
		answer_the_rest(c);
	int r = end(c, reterr);
	if (r < 0) /* a thread still uses it */
		return r;
	cleanup_free char *loss = client_sessions_take_loss(&c->sessions);
	rpc_done(c);
	return loss ? err_set(reterr, CORDON_OS, "%s", loss) : 0;
}
