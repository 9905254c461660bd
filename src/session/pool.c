/* session/pool.c - sessions made ahead of time. One thread of its own makes and buries them, so
 * that taking one costs a lock; a session is handed out once and then replaced by a clean one. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "policy/public.h"
#include "session/session.h"

enum { POOL_DEFAULT = 4, POOL_MAX = 100, RETRY_MS = 200, REST_MS = 2 };

struct cordon_pool {
	struct cordon_session_options options;
	struct cordon_policy *policy;
	struct cordon_tools *tools;
	char *guest;
	struct strlist env;
	uint32_t size, max_size;
	bool reuse;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* something became idle, or work came for the thread */
	pthread_t thread;
	bool has_thread, is_closed;
	struct cordon_session *idle[POOL_MAX], *buried[POOL_MAX * 2];
	uint32_t idle_count, busy_count, buried_count, waiting;
	uint64_t used_ns; /* when one was last taken or given back */
	bool is_making;
	struct cordon_error *last_error; /* why the last one could not be made */
};

/* Called with the lock held; lets go of it while the session starts. */
static void make_one(struct cordon_pool *p)
{
	struct cordon_session *s = NULL;
	struct cordon_error *e = NULL;

	p->is_making = true;
	pthread_mutex_unlock(&p->lock);
	int r = session_open(&p->options, true, &s, &e);
	pthread_mutex_lock(&p->lock);
	p->is_making = false;
	cordon_error_free(p->last_error);
	p->last_error = e;
	if (r == 0)
		p->idle[p->idle_count++] = s;
	pthread_cond_broadcast(&p->changed);
}

static void bury_one(struct cordon_pool *p)
{
	struct cordon_session *s = p->buried[--p->buried_count];

	pthread_mutex_unlock(&p->lock);
	cordon_session_close(s);
	pthread_mutex_lock(&p->lock);
}

static bool wants_more(const struct cordon_pool *p)
{
	return !p->is_closed && p->idle_count < p->size &&
	       p->idle_count + p->busy_count < p->max_size;
}

static void wait_until(struct cordon_pool *p, uint64_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += (time_t)(ms / 1000);
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	(void)pthread_cond_timedwait(&p->changed, &p->lock, &t);
}

/* Making and burying take a processor from whoever has just taken a session to use it: as long as
 * there is another for the next, they can wait a moment. */
static uint64_t rest_ms(const struct cordon_pool *p)
{
	uint64_t since_ms = (clock_now_ns() - p->used_ns) / 1000000;

	if (p->is_closed || p->waiting || p->idle_count == 0 || p->buried_count > p->size)
		return 0;
	return since_ms >= REST_MS ? 0 : REST_MS - since_ms;
}

static void *keep_filled(void *arg)
{
	struct cordon_pool *p = arg;
	uint64_t rest;

	pthread_mutex_lock(&p->lock);
	while (!p->is_closed || p->buried_count > 0) {
		if (!wants_more(p) && p->buried_count == 0)
			pthread_cond_wait(&p->changed, &p->lock);
		else if ((rest = rest_ms(p)) > 0)
			wait_until(p, rest);
		else if (wants_more(p))
			make_one(p);
		else
			bury_one(p);
		if (p->last_error && wants_more(p))
			wait_until(p, RETRY_MS);
	}
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

/* The first member is made here, so that what cannot work fails now and not in the background. */
int cordon_pool_new(const struct cordon_pool_options *opts, struct cordon_pool **ret,
		    struct cordon_error **reterr)
{
	int r = check_size(opts, reterr);
	struct cordon_pool *p = r < 0 ? NULL : mem_alloc(sizeof(*p));

	if (!p)
		return r < 0 ? r : err_errno(reterr, ENOMEM, "make a pool");
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, NULL);
	r = copy_options(p, opts, reterr);
	if (r == 0)
		r = session_open(&p->options, true, &p->idle[0], reterr);
	if (r == 0) {
		p->idle_count = 1;
		p->has_thread = pthread_create(&p->thread, NULL, keep_filled, p) == 0;
		if (!p->has_thread)
			r = err_errno(reterr, EAGAIN, "start the pool's thread");
	}
	if (r < 0) {
		cordon_pool_free(p);
		return r;
	}
	pthread_mutex_lock(&p->lock);
	while (wants_more(p) && !p->last_error)
		pthread_cond_wait(&p->changed, &p->lock);
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
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	if (p->has_thread)
		pthread_join(p->thread, NULL);
	for (uint32_t i = 0; i < p->idle_count; i++)
		cordon_session_close(p->idle[i]);
	cordon_error_free(p->last_error);
	cordon_policy_free(p->policy);
	if (p->tools)
		cordon_tools_unref(p->tools);
	free(p->guest);
	strlist_done(&p->env);
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
	return NULL;
}

/* An idle member that lives, or NULL. The lock is held. */
static struct cordon_session *take_idle(struct cordon_pool *p)
{
	while (p->idle_count > 0) {
		struct cordon_session *s = p->idle[0];

		p->idle_count--;
		memmove(&p->idle[0], &p->idle[1], p->idle_count * sizeof(p->idle[0]));
		if (cordon_session_is_alive(s)) {
			p->busy_count++;
			p->used_ns = clock_now_ns();
			pthread_cond_broadcast(&p->changed);
			return s;
		}
		p->buried[p->buried_count++] = s;
		pthread_cond_broadcast(&p->changed);
	}
	return NULL;
}

int cordon_pool_acquire(struct cordon_pool *p, uint64_t wait_ms, struct cordon_session **ret,
			struct cordon_error **reterr)
{
	deadline_ns deadline = deadline_after_ms(wait_ms);
	struct cordon_session *s = NULL;
	int r = 0;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		if (p->is_closed) {
			r = err_set(reterr, CORDON_STATE, "Pool is closed.");
			break;
		}
		bool had_dead = p->idle_count > 0;
		s = take_idle(p);
		if (s)
			break;
		/* All members were found dead just now: theirs are on the way, whoever waits or
		 * not. */
		bool comes =
			had_dead || p->is_making || (p->busy_count < p->max_size && wants_more(p));
		if (!comes && deadline_is_over(deadline)) {
			r = err_set(reterr, CORDON_LIMIT, "All sessions are busy.");
			break;
		}
		if (comes && p->last_error && deadline_is_over(deadline)) {
			r = err_set(reterr, cordon_error_code(p->last_error),
				    "no session could be made: %s",
				    cordon_error_message(p->last_error));
			break;
		}
		p->waiting++;
		pthread_cond_broadcast(&p->changed);
		wait_until(p, comes ? 50 : 10);
		p->waiting--;
	}
	pthread_mutex_unlock(&p->lock);
	if (r == 0)
		*ret = s;
	return r;
}

void cordon_pool_release(struct cordon_pool *p, struct cordon_session *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&p->lock);
	p->busy_count--;
	p->used_ns = clock_now_ns();
	if (p->reuse && !p->is_closed && cordon_session_is_alive(s) && p->idle_count < POOL_MAX)
		p->idle[p->idle_count++] = s;
	else
		p->buried[p->buried_count++] = s;
	pthread_cond_broadcast(&p->changed);
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
