/* serve/rpc/waitlist.c - see waitlist.h. */
#include "serve/rpc/waitlist.h"

#include "base/condvar.h"
#include "base/mem.h"
#include "serve/rpc/rpc.h"
#include "session/pool.h"

enum { LOOK_MS = 50 }; /* how often to look for closed pools while requests wait */

/* A waiting request. Only the list's thread removes and frees it. */
struct parked {
	struct pool_waiter waiter;
	struct request *request;
	bool is_ready;     /* the waiter is done */
	bool is_late;      /* its deadline passed, and the pool was told */
	bool is_cancelled; /* by the client */
	struct parked *next;
};

void waitlist_init(struct waitlist *w)
{
	*w = (struct waitlist){ 0 };
	pthread_mutex_init(&w->lock, NULL);
	condvar_init(&w->changed);
}

void waitlist_done(struct waitlist *w)
{
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
}

/* Called by a thread of the pool, with the pool's lock held. */
static void on_ready(struct pool_waiter *w)
{
	struct parked *p = (struct parked *)w;
	struct waitlist *t = &p->request->rpc->waits;

	pthread_mutex_lock(&t->lock);
	p->is_ready = true;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

static bool is_closed(const struct request *q)
{
	struct client_sessions *s = &q->rpc->sessions;

	pthread_mutex_lock(&s->lock);
	bool is_over = s->is_closing || q->cs->is_closing;
	pthread_mutex_unlock(&s->lock);
	return is_over;
}

/* Removes an entry that no longer waits, for whatever reason; NULL: none. */
static struct parked *take_ended(struct waitlist *w)
{
	for (struct parked **at = &w->first; *at; at = &(*at)->next) {
		struct parked *p = *at;

		if (p->is_ready || p->is_cancelled || w->is_closing || is_closed(p->request)) {
			*at = p->next;
			w->count--;
			return p;
		}
	}
	return NULL;
}

static void finish(struct parked *p)
{
	struct request *q = p->request;
	bool is_over = is_closed(q);

	pool_leave(q->cs->pool, &p->waiter, is_over || p->is_cancelled);
	if (p->waiter.session) {
		q->loan = p->waiter.session;
		rpc_carry_on(q);
	} else {
		if (is_over && !p->waiter.error)
			(void)err_set(&p->waiter.error, CORDON_STATE, "Pool is closed.");
		else if (!p->waiter.error)
			(void)err_set(&p->waiter.error, CORDON_CANCELLED,
				      "cancelled while it waited for a session");
		rpc_refuse(q, p->waiter.error);
	}
	cordon_error_free(p->waiter.error);
	free(p);
}

/* The pool of a waiter whose deadline passed and which was not told yet; NULL: none, and *ret_next
 * is when to look again. */
static struct cordon_pool *find_late(struct waitlist *w, deadline_ns *ret_next)
{
	*ret_next = w->first ? deadline_after_ms(LOOK_MS) : 0;
	for (struct parked *p = w->first; p; p = p->next) {
		if (p->is_late)
			continue;
		if (deadline_is_over(p->waiter.deadline)) {
			p->is_late = true;
			return p->request->cs->pool;
		}
		if (p->waiter.deadline < *ret_next)
			*ret_next = p->waiter.deadline;
	}
	return NULL;
}

static void *look_after(void *arg)
{
	struct rpc *c = arg;
	struct waitlist *w = &c->waits;
	struct cordon_pool *pool = NULL;
	struct parked *p = NULL;
	deadline_ns next;

	pthread_mutex_lock(&w->lock);
	while (!w->is_closing || w->first) {
		if (!(p = take_ended(w)) && !(pool = find_late(w, &next))) {
			(void)condvar_wait(&w->changed, &w->lock, next);
			continue;
		}
		pthread_mutex_unlock(&w->lock);
		if (p)
			finish(p);
		else
			pool_check_waiters(
				pool); /* the pool exists, because its request is in our list */
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	rpc_leave(c);
	return NULL;
}

/* Called with the lock held. */
static int add(struct waitlist *w, struct parked *p, struct cordon_error **reterr)
{
	if (w->is_closing)
		return err_set(reterr, CORDON_STATE, "Pool is closed.");
	if (w->count >= WAITLIST_MAX)
		return err_set(reterr, CORDON_LIMIT, "too many requests wait for a session (%d)",
			       WAITLIST_MAX);
	w->has_thread = w->has_thread || rpc_start_thread(p->request->rpc, look_after, NULL);
	if (!w->has_thread)
		return err_set(
			reterr, CORDON_LIMIT,
			"no session is free, and no thread could be started to wait for one");
	struct parked **last = &w->first;
	while (*last)
		last = &(*last)->next;
	*last = p;
	w->count++;
	pthread_cond_signal(&w->changed);
	return 0;
}

int waitlist_take(struct request *q, uint64_t wait_ms, struct cordon_error **reterr)
{
	struct waitlist *w = &q->rpc->waits;
	struct parked *p = mem_alloc(sizeof(*p));
	int r = 0;

	if (!p)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	*p = (struct parked){
		.waiter = { .deadline = deadline_after_ms(wait_ms), .wake = on_ready }, .request = q
	};
	pool_queue(q->cs->pool, &p->waiter);
	pthread_mutex_lock(&w->lock);
	bool is_ready = p->is_ready;
	if (!is_ready)
		r = add(w, p, reterr);
	pthread_mutex_unlock(&w->lock);
	if (!is_ready && r == 0)
		return 0;
	pool_leave(q->cs->pool, &p->waiter, r < 0);
	if (r == 0 && !p->waiter.session)
		r = p->waiter.error ? -(int)cordon_error_code(p->waiter.error) : -CORDON_NOMEM;
	if (p->waiter.error && reterr && !*reterr)
		*reterr = TAKE_PTR(p->waiter.error);
	cordon_error_free(p->waiter.error);
	q->loan = p->waiter.session;
	free(p);
	return r < 0 ? r : 1;
}

bool waitlist_cancel(struct rpc *c, const json_t *request_id)
{
	struct waitlist *w = &c->waits;
	bool found = false;

	pthread_mutex_lock(&w->lock);
	for (struct parked *p = w->first; p; p = p->next)
		if (rpc_has_id(p->request, request_id)) {
			p->is_cancelled = found = true;
			pthread_cond_signal(&w->changed);
		}
	pthread_mutex_unlock(&w->lock);
	return found;
}

void waitlist_close(struct rpc *c)
{
	pthread_mutex_lock(&c->waits.lock);
	c->waits.is_closing = true;
	pthread_cond_signal(&c->waits.changed);
	pthread_mutex_unlock(&c->waits.lock);
}
