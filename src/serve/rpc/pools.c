/* serve/rpc/pools.c - methods for pools, which lend sessions made in advance. */
#include <cordon/cordon.h>

#include "base/clock.h"
#include "serve/rpc/open_params.h"
#include "serve/rpc/rpc_execution.h"
#include "serve/rpc/target.h"

enum { SLICE_MS = 200 };

static int read_sizes(const struct request *q, struct cordon_pool_options *ret,
		      struct cordon_error **reterr)
{
	uint64_t size = 4, max_size = 0;
	int r = target_uint(q, "size", &size, reterr);

	if (r == 0)
		r = target_uint(q, "max_size", &max_size, reterr);
	if (r == 0)
		r = target_bool(q, "reuse", &ret->reuse, reterr);
	if (r < 0)
		return r;
	if (size < 1)
		return err_set(reterr, CORDON_INVALID, "size must be at least 1");
	if (size > 100 || max_size > 100)
		return err_set(reterr, CORDON_INVALID, "size must not exceed 100");
	ret->size = (uint32_t)size;
	ret->max_size = (uint32_t)max_size;
	return 0;
}

/* How many sessions it may have. */
static unsigned largest(const struct cordon_pool_options *o)
{
	return o->max_size > o->size ? o->max_size : o->size;
}

static int open_pool(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_open_params struct open_params o = { 0 };
	struct cordon_pool_options options = { 0 };
	struct cordon_pool *pool = NULL;
	struct client_session *cs = NULL;
	int r = open_params_read(q, NULL, &o, reterr);

	if (r == 0)
		r = read_sizes(q, &options, reterr);
	if (r == 0)
		r = client_session_new_pool(&q->rpc->sessions, largest(&options), &cs, reterr);
	if (r < 0)
		return r;
	options.session = o.options;
	r = client_session_charge(&q->rpc->sessions, cs, open_params_memory(&o) * largest(&options),
				  reterr);
	if (r == 0)
		r = cordon_pool_new(&options, &pool, reterr);
	if (r < 0) {
		client_session_fail(&q->rpc->sessions, cs);
		return r;
	}
	(void)str_copy(cs->guest, sizeof(cs->guest), o.options.guest ? o.options.guest : "python");
	client_session_open_pool(&q->rpc->sessions, cs, pool);
	r = buf_printf(ret, "{\"pool\":\"%s\"}", cs->id);
	client_session_put(&q->rpc->sessions, cs);
	return r;
}

/* Used where the waitlist did not provide a session. Waits in short steps, so that the end of the
 * client or the pool is noticed. */
static int acquire_session(struct request *q, struct cordon_session **ret,
			   struct cordon_error **reterr)
{
	uint64_t wait_ms = 0;
	int r = target_uint(q, "wait_ms", &wait_ms, reterr);

	if (r == 0 && q->loan) {
		*ret = TAKE_PTR(q->loan);
		return 0;
	}
	if (r < 0)
		return r;
	deadline_ns deadline = deadline_after_ms(wait_ms);
	for (;;) {
		cleanup_error struct cordon_error *e = NULL;
		int left = wait_ms ? deadline_poll_ms(deadline) : 0;
		uint64_t slice = left > SLICE_MS ? SLICE_MS : (uint64_t)left;
		r = cordon_pool_acquire(q->cs->pool, slice, ret, &e);
		if (r == 0)
			return 0;
		pthread_mutex_lock(&q->rpc->sessions.lock);
		bool is_over = q->rpc->sessions.is_closing || q->cs->is_closing;
		pthread_mutex_unlock(&q->rpc->sessions.lock);
		if (is_over)
			return err_set(reterr, CORDON_STATE, "Pool is closed.");
		if (r != -CORDON_LIMIT || deadline_is_over(deadline)) {
			*reterr = TAKE_PTR(e);
			return r;
		}
	}
}

static int lend(struct request *q, struct client_session **ret, struct cordon_error **reterr)
{
	struct cordon_session *session = NULL;
	int r = acquire_session(q, &session, reterr);

	if (r < 0)
		return r;
	r = client_session_lend(&q->rpc->sessions, q->cs, session, ret, reterr);
	if (r < 0)
		cordon_pool_release(q->cs->pool, session);
	return r;
}

static int execute(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct client_session *loan = NULL;
	int r = lend(q, &loan, reterr);

	if (r < 0)
		return r;
	r = client_session_begin(&q->rpc->sessions, loan, q->id, reterr);
	if (r == 0) {
		r = rpc_execution_run(q, loan, ret, reterr);
		client_session_end(&q->rpc->sessions, loan);
	}
	client_session_close(&q->rpc->sessions, loan);
	return r;
}

static int acquire(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct client_session *loan = NULL;
	int r = lend(q, &loan, reterr);

	if (r < 0)
		return r;
	r = buf_printf(ret, "{\"session\":\"%s\"}", loan->id);
	client_session_put(&q->rpc->sessions, loan);
	return r;
}

static int status(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct cordon_pool_status s = cordon_pool_get_status(q->cs->pool);

	(void)reterr;
	return buf_printf(ret, "{\"total\":%u,\"busy\":%u,\"idle\":%u,\"dead\":%u}", s.total,
			  s.busy, s.idle, s.dead);
}

static int list(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct client_sessions *t = &q->rpc->sessions;
	cleanup_json json_t *ids = json_array();

	pthread_mutex_lock(&t->lock);
	for (const struct client_session *s = t->first; s; s = s->next)
		if (s->kind == CLIENT_SESSION_POOL && s->pool && !s->is_closing)
			json_array_append_new(ids, json_string(s->id));
	pthread_mutex_unlock(&t->lock);
	cleanup_free char *text = json_text(ids, NULL);
	return text ? buf_printf(ret, "{\"pools\":%s}", text)
		    : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int close_pool(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	(void)reterr;
	client_session_close(&q->rpc->sessions, q->cs);
	q->cs = NULL;
	return buf_add_str(ret, "{}");
}

/* session.close returns a session that pool.acquire lent. */
const struct rpc_method rpc_pool_methods[] = {
	{ "pool.open", open_pool, RPC_SLOW, OPEN_PARAMS_PARAMS " size max_size reuse" },
	{ "pool.execute", execute, RPC_SLOW | RPC_POOL | RPC_WAITS | RPC_CODE,
	  EXECUTION_PARAMS " wait_ms" },
	{ "pool.acquire", acquire, RPC_SLOW | RPC_POOL | RPC_WAITS, "wait_ms" },
	{ "pool.status", status, RPC_POOL, "" },
	{ "pool.list", list, 0, "" },
	{ "pool.close", close_pool, RPC_SLOW | RPC_POOL | RPC_ENDS, "" },
	{ 0 },
};
