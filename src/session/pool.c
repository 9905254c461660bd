/* session/pool.c - sessions made in advance. The pool's own threads make and close them, so taking
 * one costs only a lock. Each session is handed out once and then replaced by a new one.
 * A session counts as living while it is idle, taken, being made, or dead but not closed yet. New
 * ones are made only while fewer than max_size + POOL_CLOSING_MAX live. So if closing is slower
 * than using, callers wait and the number stays bounded. */
#include "session/pool.h"

#include <errno.h>
#include <string.h>

#include "base/condvar.h"
#include "base/mem.h"
#include "base/str.h"
#include "policy/public.h"
#include "session/session.h"
#include "session/session_expose.h"

enum {
	POOL_DEFAULT = 4,
	POOL_MAX = 100,
	POOL_CLOSING_MAX = 2, /* may live beyond max_size while they are being closed */
	POOL_DEAD_MAX = POOL_MAX + POOL_CLOSING_MAX,
	POOL_THREADS = 2,
	RETRY_MS = 200,
	REST_MS = 2,
};

struct cordon_pool {
	struct cordon_session_options options;
	struct cordon_policy *policy;
	struct cordon_tools *tools;
	char *guest;
	struct strlist env;
	uint32_t size, max_size;
	bool reuse;

	pthread_mutex_t lock;
	pthread_cond_t work; /* for the pool's threads: there may be a session to make or close */
	pthread_cond_t left; /* for opening and freeing: a session was made, or a waiter left */
	pthread_t threads[POOL_THREADS];
	uint32_t thread_count;
	bool is_closed;
	struct cordon_session *idle[POOL_MAX];      /* oldest first */
	struct cordon_session *dead[POOL_DEAD_MAX]; /* waiting to be closed */
	uint32_t idle_count, busy_count, dead_count, making, closing;
	struct pool_waiter *first, **last;
	uint32_t inside;                 /* threads inside cordon_pool_acquire */
	uint64_t used_ns;                /* when a session was last taken or returned */
	struct cordon_error *last_error; /* why the last one could not be made */
	deadline_ns retry_at;            /* after an error, not before this time */
};

static uint32_t living(const struct cordon_pool *p)
{
	return p->idle_count + p->busy_count + p->making + p->dead_count + p->closing;
}

static bool wants_more(const struct cordon_pool *p)
{
	return !p->is_closed && p->idle_count + p->making < p->size &&
	       p->idle_count + p->busy_count + p->making < p->max_size;
}

static bool has_room(const struct cordon_pool *p)
{
	return living(p) < p->max_size + POOL_CLOSING_MAX;
}

/* There is always room, because living() is bounded. */
static void put_away(struct cordon_pool *p, struct cordon_session *s)
{
	if (p->dead_count < POOL_DEAD_MAX)
		p->dead[p->dead_count++] = s;
	pthread_cond_signal(&p->work);
}

/* An idle session that is still alive, or NULL. */
static struct cordon_session *take_idle(struct cordon_pool *p)
{
	while (p->idle_count > 0) {
		struct cordon_session *s = p->idle[0];

		p->idle_count--;
		memmove(&p->idle[0], &p->idle[1], p->idle_count * sizeof(p->idle[0]));
		if (cordon_session_is_alive(s)) {
			p->busy_count++;
			p->used_ns = clock_now_ns();
			pthread_cond_signal(&p->work);
			return s;
		}
		put_away(p, s);
	}
	return NULL;
}

/* The error for a waiter whose deadline has passed; 0: a session is being made that it may still
 * get. */
static int refuse(const struct cordon_pool *p, struct cordon_error **reterr)
{
	if (p->is_closed)
		return err_set(reterr, CORDON_STATE, "Pool is closed.");
	if (p->busy_count >= p->max_size)
		return err_set(reterr, CORDON_LIMIT, "All sessions are busy.");
	if (!p->last_error)
		return 0;
	cleanup_free char *why = err_text(p->last_error);
	return err_set(reterr, cordon_error_code(p->last_error), "no session could be started: %s",
		       why ? why : cordon_error_message(p->last_error));
}

/* Call after every change. The first waiters get the idle sessions. Waiters that cannot be served
 * in time get an error. */
static void settle(struct cordon_pool *p)
{
	struct pool_waiter **at = &p->first;
	bool has_idle = true;

	while (*at) {
		struct pool_waiter *w = *at;

		if (has_idle && !p->is_closed)
			w->session = take_idle(p);
		has_idle = w->session != NULL;
		if (has_idle ||
		    ((p->is_closed || deadline_is_over(w->deadline)) && refuse(p, &w->error) < 0)) {
			*at = w->next;
			w->next = NULL;
			w->is_done = true;
			w->wake(w);
		} else {
			at = &w->next;
		}
	}
	p->last = at;
}

/* Called with the lock held; releases it while the session starts. */
static void make_one(struct cordon_pool *p)
{
	struct cordon_session *s = NULL;
	struct cordon_error *e = NULL;

	p->making++;
	pthread_cond_signal(&p->work); /* there may be more work for another thread */
	pthread_mutex_unlock(&p->lock);
	int r = session_open(&p->options, true, &s, &e);
	pthread_mutex_lock(&p->lock);
	p->making--;
	cordon_error_free(p->last_error);
	p->last_error = e;
	if (r == 0 && p->is_closed)
		put_away(p, s);
	else if (r == 0)
		p->idle[p->idle_count++] = s;
	else
		p->retry_at = deadline_after_ms(RETRY_MS);
	settle(p);
	pthread_cond_broadcast(&p->left);
}

/* Closing may free what the last attempt to make a session lacked, so it may be retried at once. */
static void close_one(struct cordon_pool *p)
{
	struct cordon_session *s = p->dead[--p->dead_count];

	p->closing++;
	pthread_cond_signal(&p->work);
	pthread_mutex_unlock(&p->lock);
	cordon_session_close(s);
	pthread_mutex_lock(&p->lock);
	p->closing--;
	p->retry_at = 0;
	pthread_cond_signal(&p->work);
}

/* Making and closing sessions takes processor time from the caller who just took one. While half of
 * the pool is idle, that work can wait a moment. Otherwise it must not wait, or a caller that takes
 * sessions without pause would soon find none. */
static deadline_ns rest_until(const struct cordon_pool *p)
{
	deadline_ns until = p->used_ns + REST_MS * 1000000ULL;

	if (p->is_closed || p->first || p->idle_count * 2 < p->size || !has_room(p))
		return 0;
	return deadline_is_over(until) ? 0 : until;
}

/* What a thread of the pool does next. After a failed attempt to make a session it first closes
 * dead ones: they may hold what was missing. */
static void work_once(struct cordon_pool *p)
{
	bool makes = wants_more(p) && has_room(p), waits = p->last_error && p->retry_at;
	deadline_ns rest = rest_until(p);

	if (!makes && p->dead_count == 0)
		pthread_cond_wait(&p->work, &p->lock);
	else if (rest)
		(void)condvar_wait(&p->work, &p->lock, rest);
	else if (makes && !(p->last_error && p->dead_count > 0) &&
		 !(waits && !deadline_is_over(p->retry_at)))
		make_one(p);
	else if (p->dead_count > 0)
		close_one(p);
	else
		(void)condvar_wait(&p->work, &p->lock, p->retry_at);
}

static void *keep_filled(void *arg)
{
	struct cordon_pool *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->is_closed || p->dead_count > 0)
		work_once(p);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static int copy_options(struct cordon_pool *p, const struct cordon_pool_options *o,
			struct cordon_error **reterr)
{
	p->options = o->session;
	p->size = o->size ? o->size : POOL_DEFAULT;
	p->max_size = o->max_size ? o->max_size : p->size;
	p->reuse = o->reuse;
	p->guest = str_dup(o->session.guest);
	p->options.guest = p->guest;
	p->tools = o->session.tools ? cordon_tools_ref(o->session.tools) : NULL;
	if (o->session.policy) {
		p->policy = cordon_policy_copy(o->session.policy, reterr);
		if (!p->policy)
			return -CORDON_NOMEM;
		p->options.policy = p->policy;
	}
	for (const char *const *e = o->session.env; e && *e; e++)
		if (strlist_add(&p->env, *e) < 0)
			return err_errno(reterr, ENOMEM, "make a pool");
	p->options.env = p->env.count ? (const char *const *)p->env.items : NULL;
	return 0;
}

static int check_size(const struct cordon_pool_options *o, struct cordon_error **reterr)
{
	if (o->size > POOL_MAX || o->max_size > POOL_MAX)
		return err_set(reterr, CORDON_INVALID, "pool size must not exceed 100");
	if (o->max_size && o->max_size < (o->size ? o->size : POOL_DEFAULT))
		return err_set(reterr, CORDON_INVALID, "the pool's maximum is below its size");
	return 0;
}

/* One thread is enough; more are faster. */
static int start_threads(struct cordon_pool *p, struct cordon_error **reterr)
{
	while (p->thread_count < POOL_THREADS &&
	       pthread_create(&p->threads[p->thread_count], NULL, keep_filled, p) == 0)
		p->thread_count++;
	return p->thread_count > 0 ? 0 : err_errno(reterr, EAGAIN, "start the pool's thread");
}

/* The first session is made here, so that a bad policy fails now and not in the background. */
int cordon_pool_new(const struct cordon_pool_options *opts, struct cordon_pool **ret,
		    struct cordon_error **reterr)
{
	int r = check_size(opts, reterr);
	if (r == 0 && opts->session.languages)
		r = err_set(reterr, CORDON_UNSUPPORTED, "the sessions of a pool have one language");
	if (r == 0 && opts->session.packages)
		r = err_set(reterr, CORDON_UNSUPPORTED,
			    "the sessions of a pool install no packages");
	struct cordon_pool *p = r < 0 ? NULL : mem_alloc(sizeof(*p));

	if (!p)
		return r < 0 ? r : err_errno(reterr, ENOMEM, "make a pool");
	pthread_mutex_init(&p->lock, NULL);
	condvar_init(&p->work);
	condvar_init(&p->left);
	p->last = &p->first;
	r = copy_options(p, opts, reterr);
	if (r == 0)
		r = session_open(&p->options, true, &p->idle[0], reterr);
	if (r == 0) {
		p->idle_count = 1;
		r = start_threads(p, reterr);
	}
	if (r < 0) {
		cordon_pool_free(p);
		return r;
	}
	pthread_mutex_lock(&p->lock);
	while ((wants_more(p) || p->making > 0) && !p->last_error)
		pthread_cond_wait(&p->left, &p->lock);
	pthread_mutex_unlock(&p->lock);
	*ret = p;
	return 0;
}

struct cordon_pool *cordon_pool_free(struct cordon_pool *p)
{
	if (!p)
		return NULL;
	pthread_mutex_lock(&p->lock);
	p->is_closed = true;
	settle(p);
	while (p->idle_count > 0)
		put_away(p, p->idle[--p->idle_count]);
	pthread_cond_broadcast(&p->work);
	while (p->inside > 0)
		pthread_cond_wait(&p->left, &p->lock);
	pthread_mutex_unlock(&p->lock);
	for (uint32_t i = 0; i < p->thread_count; i++)
		pthread_join(p->threads[i], NULL);
	for (uint32_t i = 0; i < p->dead_count; i++) /* if no thread was started */
		cordon_session_close(p->dead[i]);
	cordon_error_free(p->last_error);
	cordon_policy_free(p->policy);
	if (p->tools)
		cordon_tools_unref(p->tools);
	free(p->guest);
	strlist_done(&p->env);
	pthread_cond_destroy(&p->work);
	pthread_cond_destroy(&p->left);
	pthread_mutex_destroy(&p->lock);
	free(p);
	return NULL;
}

static void queue(struct cordon_pool *p, struct pool_waiter *w)
{
	*p->last = w;
	p->last = &w->next;
	settle(p);
	if (!w->is_done)
		pthread_cond_signal(&p->work); /* the threads may be pausing */
}

void pool_queue(struct cordon_pool *p, struct pool_waiter *w)
{
	pthread_mutex_lock(&p->lock);
	queue(p, w);
	pthread_mutex_unlock(&p->lock);
}

void pool_check_waiters(struct cordon_pool *p)
{
	pthread_mutex_lock(&p->lock);
	settle(p);
	pthread_mutex_unlock(&p->lock);
}

void pool_leave(struct cordon_pool *p, struct pool_waiter *w, bool gives_back)
{
	pthread_mutex_lock(&p->lock);
	for (struct pool_waiter **at = &p->first; *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			if (p->last == &w->next)
				p->last = at;
			break;
		}
	pthread_mutex_unlock(&p->lock);
	if (gives_back) {
		cordon_pool_release(p, w->session);
		w->session = NULL;
	}
}

/* A caller's thread that waits. */
struct sleeper {
	struct pool_waiter waiter;
	pthread_cond_t done;
};

static void wake_sleeper(struct pool_waiter *w)
{
	pthread_cond_signal(&((struct sleeper *)w)->done);
}

int cordon_pool_acquire(struct cordon_pool *p, uint64_t wait_ms, struct cordon_session **ret,
			struct cordon_error **reterr)
{
	struct sleeper s = { .waiter = { .deadline = deadline_after_ms(wait_ms),
					 .wake = wake_sleeper } };
	struct pool_waiter *w = &s.waiter;
	bool is_over = false;

	condvar_init(&s.done);
	pthread_mutex_lock(&p->lock);
	p->inside++;
	queue(p, w);
	while (!w->is_done) {
		/* After the deadline it waits on only for a session that is already being made. */
		is_over = !condvar_wait(&s.done, &p->lock, is_over ? 0 : w->deadline);
		if (!w->is_done && is_over)
			settle(p);
	}
	if (--p->inside == 0)
		pthread_cond_broadcast(&p->left);
	pthread_mutex_unlock(&p->lock);
	pthread_cond_destroy(&s.done);
	if (w->session) {
		*ret = w->session;
		return 0;
	}
	int code = w->error ? -(int)cordon_error_code(w->error) : -CORDON_NOMEM;
	if (reterr)
		*reterr = w->error;
	else
		cordon_error_free(w->error);
	return code;
}

void cordon_pool_release(struct cordon_pool *p, struct cordon_session *s)
{
	if (!s)
		return;
	session_expose_end(s); /* its ports are not those of who gets it next */
	pthread_mutex_lock(&p->lock);
	p->busy_count--;
	p->used_ns = clock_now_ns();
	if (p->reuse && !p->is_closed && p->idle_count < POOL_MAX && cordon_session_is_alive(s))
		p->idle[p->idle_count++] = s;
	else
		put_away(p, s);
	settle(p);
	pthread_mutex_unlock(&p->lock);
}

int cordon_pool_execute(struct cordon_pool *p, const struct cordon_execute_options *opts,
			uint64_t wait_ms, struct cordon_result **ret, struct cordon_error **reterr)
{
	struct cordon_session *s = NULL;
	int r = cordon_pool_acquire(p, wait_ms, &s, reterr);

	if (r < 0)
		return r;
	r = cordon_session_execute(s, opts, ret, reterr);
	cordon_pool_release(p, s);
	return r;
}

struct cordon_pool_status cordon_pool_get_status(const struct cordon_pool *pool)
{
	struct cordon_pool *p = (struct cordon_pool *)(uintptr_t)pool;
	struct cordon_pool_status s = { 0 };

	pthread_mutex_lock(&p->lock);
	if (!p->is_closed) {
		s.busy = p->busy_count;
		for (uint32_t i = 0; i < p->idle_count; i++)
			if (cordon_session_is_alive(p->idle[i]))
				s.idle++;
			else
				s.dead++;
		s.total = s.busy + s.idle + s.dead;
	}
	pthread_mutex_unlock(&p->lock);
	return s;
}
