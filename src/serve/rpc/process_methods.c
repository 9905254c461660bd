/* serve/rpc/process_methods.c - see process_methods.h. Every command runs as a process of the
 * library; one in the foreground is waited for at once. */
#include "serve/rpc/process_methods.h"

#include <cordon/command.h>
#include <signal.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "serve/rpc/rpc_execution.h"
#include "serve/rpc/target.h"

/* How often a wait looks whether its session is closed. */
enum { LOOK_MS = 20 };

/* A request that waits for a command, for `cancel`. */
struct command_call {
	const struct request *request;
	uint64_t process;
	struct command_call *next;
};

static void add_call(struct command_call *call)
{
	struct rpc *c = call->request->rpc;

	pthread_mutex_lock(&c->lock);
	call->next = c->commands;
	c->commands = call;
	pthread_mutex_unlock(&c->lock);
}

static void remove_call(struct command_call *call)
{
	struct rpc *c = call->request->rpc;

	pthread_mutex_lock(&c->lock);
	for (struct command_call **p = &c->commands; *p; p = &(*p)->next)
		if (*p == call) {
			*p = call->next;
			break;
		}
	pthread_mutex_unlock(&c->lock);
}

bool process_methods_cancel(struct rpc *c, const json_t *id)
{
	bool is_found = false;

	pthread_mutex_lock(&c->lock);
	for (struct command_call *call = c->commands; call && !is_found; call = call->next)
		if (rpc_has_id(call->request, id)) {
			struct cordon_session *s = call->request->cs->session;

			is_found = cordon_process_kill(s, call->process, NULL) == 0;
		}
	pthread_mutex_unlock(&c->lock);
	return is_found;
}

/* Waits for the end of a process, as long as its session is open. */
static int wait_for(struct request *q, uint64_t process, uint64_t wait_ms,
		    struct cordon_result **ret, struct cordon_error **reterr)
{
	deadline_ns deadline = wait_ms == UINT64_MAX ? 0 : deadline_after_ms(wait_ms);

	for (;;) {
		cleanup_error struct cordon_error *e = NULL;
		bool is_last = deadline_is_over(deadline) || target_is_leaving(q);
		int r = cordon_process_wait(q->cs->session, process, is_last ? 0 : LOOK_MS, ret,
					    &e);

		if (r != -CORDON_TIMEOUT || is_last) {
			if (r < 0 && reterr)
				*reterr = TAKE_PTR(e);
			return r;
		}
	}
}

/* In the foreground. The output goes to x, so the command must have ended when this returns. */
static int run_command(struct request *q, struct cordon_command_options *o, struct rpc_execution *x,
		       struct buf *ret, struct cordon_error **reterr)
{
	struct command_call call = { .request = q };
	struct cordon_result *result = NULL;
	cleanup_error struct cordon_error *e = NULL;

	if (!o->stdin_bytes)
		o->stdin_bytes = "";
	o->forget = true;
	int r = cordon_process_start(q->cs->session, o, &call.process, reterr);
	if (r < 0)
		return r;
	add_call(&call);
	r = wait_for(q, call.process, UINT64_MAX, &result, &e);
	remove_call(&call);
	if (r == -CORDON_TIMEOUT) { /* the session is closed */
		e = cordon_error_free(e);
		(void)cordon_process_kill(q->cs->session, call.process, NULL);
		r = cordon_process_wait(q->cs->session, call.process, UINT64_MAX, &result, &e);
	}
	if (r < 0) {
		if (reterr)
			*reterr = TAKE_PTR(e);
		return r;
	}
	rpc_execution_flush(x);
	r = buf_add_str(ret, cordon_result_json(result));
	cordon_result_free(result);
	return r;
}

/* A command in the background: for its output, and until its number was answered. */
struct background {
	struct rpc_execution x; /* first: it is the argument of its output */
	char *session;
	_Atomic unsigned refs;
};

static void background_put(struct background *b)
{
	if (--b->refs > 0)
		return;
	free(b->session);
	free(b);
}

/* The last callback. */
static void tell_end(uint64_t process, void *arg)
{
	struct background *b = arg;
	cleanup_free char *text = str_printf("{\"session\":\"%s\",\"process\":%llu}", b->session,
					     (unsigned long long)process);

	rpc_execution_flush(&b->x);
	if (text)
		(void)rpc_notify(b->x.rpc, "process.ended", text, strlen(text));
	background_put(b);
}

static int start_command(struct request *q, struct cordon_command_options *o,
			 const struct rpc_execution *x, struct buf *ret,
			 struct cordon_error **reterr)
{
	struct background *b = mem_alloc(sizeof(*b));

	if (!b || !(b->session = str_dup(x->session))) {
		free(b);
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	b->refs = 2;
	b->x = (struct rpc_execution){ .rpc = x->rpc,
				       .session = b->session,
				       .is_base64 = x->is_base64 };
	o->output_arg = b;
	o->ended = tell_end;
	o->ended_arg = b;
	if (!json_object_get(q->params, "timeout_ms"))
		o->timeout_ms = UINT64_MAX;
	/* The number is there before the thread of the process begins. */
	int r = cordon_process_start(q->cs->session, o, &b->x.process, reterr);
	if (r == 0)
		r = buf_printf(ret, "{\"process\":%llu}", (unsigned long long)b->x.process);
	else
		b->refs--; /* there will be no last callback */
	background_put(b);
	return r;
}

static int read_env(const struct request *q, struct strlist *ret, struct cordon_error **reterr)
{
	json_t *env = NULL, *value;
	const char *name;
	int r = json_get_object(q->params, "/params", "env", &env, reterr);

	json_object_foreach(env, name, value)
	{
		bool is_good = json_is_string(value) && !strchr(name, '=');
		cleanup_free char *pair =
			is_good ? str_printf("%s=%s", name, json_string_value(value)) : NULL;

		if (r == 0 && !is_good)
			r = err_set(reterr, CORDON_INVALID, "/params/env/%.100s must be a string",
				    name);
		if (r == 0 && (!pair || strlist_add(ret, pair) < 0))
			r = err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	return r;
}

/* Rows or columns of a terminal; 0 if they are not given. */
static int read_size(const json_t *o, const char *name, uint16_t *ret, struct cordon_error **reterr)
{
	const json_t *j = json_object_get(o, name);
	json_int_t n = json_integer_value(j);

	if (j && (!json_is_integer(j) || n < 1 || n > UINT16_MAX))
		return err_set(reterr, CORDON_INVALID, "%s of a terminal must be 1 to %d", name,
			       UINT16_MAX);
	*ret = (uint16_t)n;
	return 0;
}

/* true, or an object with the size. */
static int read_pty(const struct request *q, struct cordon_command_options *o,
		    struct cordon_error **reterr)
{
	const json_t *j = json_object_get(q->params, "pty");
	const char *key;
	json_t *value;

	if (j && !json_is_boolean(j) && !json_is_object(j) && !json_is_null(j))
		return err_set(reterr, CORDON_INVALID,
			       "/params/pty must be true or an object with rows and columns");
	json_object_foreach((json_t *)(uintptr_t)j, key, value)
	{
		if (!str_eq(key, "rows") && !str_eq(key, "columns"))
			return err_set(reterr, CORDON_INVALID,
				       "/params/pty has rows and columns, not '%.100s'", key);
	}
	o->pty = json_is_true(j) || json_is_object(j);
	int r = read_size(j, "rows", &o->pty_rows, reterr);
	return r < 0 ? r : read_size(j, "columns", &o->pty_columns, reterr);
}

static int command(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_rpc_execution struct rpc_execution x = { 0 };
	cleanup_strlist struct strlist env = { 0 };
	struct cordon_command_options o = { 0 };
	bool is_background = false;
	int r = target_need(q, "command", &o.command, reterr);

	if (r == 0)
		r = rpc_execution_read_rest(q, q->cs->id, &x, reterr);
	if (r == 0)
		r = target_string(q, "cwd", &o.directory, reterr);
	if (r == 0)
		r = target_bool(q, "background", &is_background, reterr);
	if (r == 0)
		r = read_env(q, &env, reterr);
	if (r == 0)
		r = read_pty(q, &o, reterr);
	if (r == 0)
		r = client_session_pass(&q->rpc->sessions, q->cs, reterr);
	if (r < 0)
		return r;
	o.env = env.count ? (const char *const *)env.items : NULL;
	o.stdin_bytes = x.options.stdin_bytes;
	o.stdin_len = x.options.stdin_len;
	o.timeout_ms = x.options.timeout_ms;
	o.output = x.options.output;
	o.output_arg = x.options.output_arg;
	o.discard_output = x.options.discard_output;
	return is_background ? start_command(q, &o, &x, ret, reterr)
			     : run_command(q, &o, &x, ret, reterr);
}

static int list(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_free char *text = cordon_process_list(q->cs->session);

	return text ? buf_printf(ret, "{\"processes\":%s}", text)
		    : err_set(reterr, CORDON_NOMEM, "out of memory");
}

/* The number of the process that a request names. */
static int need_process(const struct request *q, uint64_t *ret, struct cordon_error **reterr)
{
	if (!json_object_get(q->params, "process"))
		return err_set(reterr, CORDON_INVALID, "Missing required param: process");
	return target_uint(q, "process", ret, reterr);
}

static int wait_process(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct cordon_result *result = NULL;
	uint64_t process = 0, wait_ms = UINT64_MAX;
	int r = need_process(q, &process, reterr);

	if (r == 0)
		r = target_uint(q, "wait_ms", &wait_ms, reterr);
	if (r == 0)
		r = wait_for(q, process, wait_ms, &result, reterr);
	if (r < 0)
		return r;
	r = buf_add_str(ret, cordon_result_json(result));
	cordon_result_free(result);
	return r;
}

static int kill_process(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	uint64_t process = 0;
	int r = need_process(q, &process, reterr);

	if (r == 0)
		r = cordon_process_kill(q->cs->session, process, reterr);
	return r < 0 ? r : buf_add_str(ret, "{}");
}

/* The names that people use, with or without SIG. */
static int signal_from_name(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} table[] = { { "INT", SIGINT },   { "TERM", SIGTERM },  { "KILL", SIGKILL },
		      { "HUP", SIGHUP },   { "QUIT", SIGQUIT },  { "USR1", SIGUSR1 },
		      { "USR2", SIGUSR2 }, { "STOP", SIGSTOP },  { "TSTP", SIGTSTP },
		      { "CONT", SIGCONT }, { "WINCH", SIGWINCH } };

	if (str_starts(name, "SIG"))
		name += 3;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (str_eq(name, table[i].name))
			return table[i].number;
	return 0;
}

static int signal_process(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *name = NULL;
	uint64_t process = 0;
	int r = need_process(q, &process, reterr);

	if (r == 0)
		r = target_need(q, "signal", &name, reterr);
	if (r < 0)
		return r;
	int number = signal_from_name(name);
	if (number == 0)
		return err_set(reterr, CORDON_INVALID,
			       "/params/signal must be INT, TERM, KILL, HUP, QUIT, USR1, USR2, "
			       "STOP, TSTP, CONT or WINCH");
	r = cordon_process_signal(q->cs->session, process, number, reterr);
	return r < 0 ? r : buf_add_str(ret, "{}");
}

static int resize_process(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	uint64_t process = 0, rows = 0, columns = 0;
	int r = need_process(q, &process, reterr);

	if (r == 0)
		r = target_uint(q, "rows", &rows, reterr);
	if (r == 0)
		r = target_uint(q, "columns", &columns, reterr);
	if (r == 0)
		r = cordon_process_resize(q->cs->session, process,
					  rows > UINT16_MAX ? 0 : (unsigned)rows,
					  columns > UINT16_MAX ? 0 : (unsigned)columns, reterr);
	return r < 0 ? r : buf_add_str(ret, "{}");
}

static int write_process(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *data = NULL;
	cleanup_free void *bytes = NULL;
	uint64_t process = 0;
	size_t len = 0, done = 0;
	bool eof = false;
	int r = need_process(q, &process, reterr);

	if (r == 0)
		r = target_string(q, "data", &data, reterr);
	if (r == 0)
		r = target_bool(q, "eof", &eof, reterr);
	if (r == 0 && data)
		r = base64_decode(data, strlen(data), &bytes, &len, reterr);
	if (r == 0 && len > 0)
		r = cordon_process_write(q->cs->session, process, bytes, len, &done, reterr);
	if (r == 0 && eof && done == len)
		r = cordon_process_write(q->cs->session, process, "", 0, &len, reterr);
	return r < 0 ? r : buf_printf(ret, "{\"written\":%zu}", done);
}

static int read_process(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *stream = "stdout";
	cleanup_free char *bytes = NULL;
	uint64_t process = 0, offset = 0;
	size_t len = 0;
	int r = need_process(q, &process, reterr);

	if (r == 0)
		r = target_string(q, "stream", &stream, reterr);
	if (r == 0)
		r = target_uint(q, "offset", &offset, reterr);
	if (r == 0 && !str_eq(stream, "stdout") && !str_eq(stream, "stderr"))
		r = err_set(reterr, CORDON_INVALID, "/params/stream must be stdout or stderr");
	if (r == 0)
		r = cordon_process_output(q->cs->session, process, str_eq(stream, "stderr") ? 2 : 1,
					  offset, &bytes, &len, &offset, reterr);
	if (r < 0)
		return r;
	cleanup_free char *text = base64_encode(bytes, len, NULL);
	return text ? buf_printf(ret, "{\"data\":\"%s\",\"offset\":%llu,\"length\":%zu}", text,
				 (unsigned long long)offset, len)
		    : err_set(reterr, CORDON_NOMEM, "out of memory");
}

const struct rpc_method rpc_process_methods[] = {
	{ "session.command", command, RPC_SLOW | RPC_SESSION | RPC_CODE,
	  "command cwd env stdin stdin_base64 timeout_ms stream keep_output background pty" },
	{ "process.list", list, RPC_SESSION, "" },
	{ "process.wait", wait_process, RPC_SLOW | RPC_SESSION, "process wait_ms" },
	{ "process.kill", kill_process, RPC_SESSION, "process" },
	{ "process.signal", signal_process, RPC_SESSION, "process signal" },
	{ "process.resize", resize_process, RPC_SESSION, "process rows columns" },
	{ "process.write", write_process, RPC_SESSION, "process data eof" },
	{ "process.output", read_process, RPC_SESSION, "process stream offset" },
	{ 0 },
};
