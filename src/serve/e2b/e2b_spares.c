/* serve/e2b/e2b_spares.c - see e2b_spares.h. */
#include "serve/e2b/e2b_spares.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "serve/http/workers.h"
#include "session/session.h"

/* READY: idle ones of a policy. KINDS_MAX: the policy that was used longest ago gives way. KEPT_MS:
 * of a policy that nobody uses. CLOSING_MAX: beyond that, who ends one waits for it. */
enum { READY = 3, KINDS_MAX = 8, THREADS = 3, KEPT_MS = 300000, CLOSING_MAX = 16 };

/* The spares of one policy. */
struct kind {
	char *key; /* the policy as JSON */
	struct cordon_policy *policy;
	struct cordon_session *ready[READY];
	unsigned count, making;
	bool is_dropped; /* not in the list any more; freed when none is being made */
	deadline_ns until;
	struct kind *next;
};

struct e2b_spares {
	struct workers *workers;
	pthread_mutex_t lock; /* guards everything below */
	struct kind *first;   /* used last */
	unsigned kinds, closing;
	bool is_closed;
};

struct job {
	struct e2b_spares *all;
	struct kind *kind;
	struct cordon_session *session;
};

static const char *const languages[] = { "python", "r", "node", "sh", NULL };

static void kind_free(struct kind *k)
{
	while (k->count > 0)
		cordon_session_close(k->ready[--k->count]);
	cordon_policy_free(k->policy);
	free(k->key);
	free(k);
}

int e2b_spares_new(struct e2b_spares **ret, struct cordon_error **reterr)
{
	struct e2b_spares *s = mem_alloc(sizeof(*s));

	if (!s)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	pthread_mutex_init(&s->lock, NULL);
	int r = workers_new(THREADS, &s->workers, reterr);
	if (r < 0) {
		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct e2b_spares *e2b_spares_free(struct e2b_spares *s)
{
	if (!s)
		return NULL;
	pthread_mutex_lock(&s->lock);
	s->is_closed = true;
	pthread_mutex_unlock(&s->lock);
	workers_free(s->workers);
	while (s->first) {
		struct kind *k = s->first;

		s->first = k->next;
		kind_free(k);
	}
	pthread_mutex_destroy(&s->lock);
	free(s);
	return NULL;
}

static int open_one(const struct cordon_policy *policy, struct cordon_session **ret,
		    struct cordon_error **reterr)
{
	const struct cordon_session_options o = { .guest = "python",
						  .languages = languages,
						  .policy = policy };

	return session_open(&o, true, ret, reterr);
}

/* ---- in other threads */

static void make_one(void *arg)
{
	struct job *j = arg;
	struct e2b_spares *s = j->all;
	struct kind *k = j->kind;
	struct cordon_session *session = NULL;

	(void)open_one(k->policy, &session, NULL);
	pthread_mutex_lock(&s->lock);
	k->making--;
	if (session && !k->is_dropped && !s->is_closed && k->count < READY)
		k->ready[k->count++] = TAKE_PTR(session);
	bool is_last = k->is_dropped && k->making == 0;
	pthread_mutex_unlock(&s->lock);
	cordon_session_close(session);
	if (is_last)
		kind_free(k);
	free(j);
}

static void close_one(void *arg)
{
	struct job *j = arg;

	cordon_session_close(j->session);
	pthread_mutex_lock(&j->all->lock);
	j->all->closing--;
	pthread_mutex_unlock(&j->all->lock);
	free(j);
}

static bool begin(struct e2b_spares *s, struct kind *k, struct cordon_session *session,
		  void (*fn)(void *arg))
{
	struct job *j = mem_alloc(sizeof(*j));

	if (!j)
		return false;
	*j = (struct job){ s, k, session };
	if (workers_run(s->workers, fn, j))
		return true;
	free(j);
	return false;
}

/* ---- kinds */

/* Takes it out of the list and puts it first. Called with the lock held. */
static struct kind *find(struct e2b_spares *s, const char *key)
{
	for (struct kind **at = &s->first; *at; at = &(*at)->next)
		if (str_eq((*at)->key, key)) {
			struct kind *k = *at;

			*at = k->next;
			k->next = s->first;
			s->first = k;
			return k;
		}
	return NULL;
}

/* Takes the last one out, if it is too many or too old: *ret is to be freed, unless one of it is
 * being made. Called with the lock held. */
static bool drop_last(struct e2b_spares *s, struct kind **ret)
{
	struct kind **last = &s->first;

	if (!s->first)
		return false;
	while ((*last)->next)
		last = &(*last)->next;
	if (s->kinds <= KINDS_MAX && !deadline_is_over((*last)->until))
		return false;
	struct kind *k = *last;
	*last = NULL;
	s->kinds--;
	k->is_dropped = true;
	*ret = k->making ? NULL : k;
	return true;
}

static struct kind *kind_new(const struct cordon_policy *policy, const char *key)
{
	struct kind *k = mem_alloc(sizeof(*k));

	if (!k)
		return NULL;
	k->key = str_dup(key);
	k->policy = cordon_policy_copy(policy, NULL);
	if (k->key && k->policy)
		return k;
	kind_free(k);
	return NULL;
}

/* Begins to make those that are missing. Called with the lock held. */
static void refill(struct e2b_spares *s, struct kind *k)
{
	while (!s->is_closed && k->count + k->making < READY) {
		k->making++;
		if (!begin(s, k, NULL, make_one)) {
			k->making--;
			return;
		}
	}
}

/* One that is ready, or NULL; others are made meanwhile. */
static struct cordon_session *take_ready(struct e2b_spares *s, const struct cordon_policy *policy)
{
	cleanup_free char *key = cordon_policy_json(policy);
	struct cordon_session *session = NULL;
	struct kind *old = NULL, *fresh = key ? kind_new(policy, key) : NULL;

	if (!key)
		return NULL;
	pthread_mutex_lock(&s->lock);
	struct kind *k = find(s, key);
	if (!k && fresh) {
		k = TAKE_PTR(fresh);
		k->next = s->first;
		s->first = k;
		s->kinds++;
	}
	if (k) {
		k->until = deadline_after_ms(KEPT_MS);
		if (k->count > 0) {
			session = k->ready[0]; /* the oldest */
			memmove(k->ready, k->ready + 1, --k->count * sizeof(*k->ready));
		}
		refill(s, k);
	}
	(void)drop_last(s, &old);
	pthread_mutex_unlock(&s->lock);
	if (old)
		kind_free(old);
	if (fresh)
		kind_free(fresh);
	return session;
}

static int set_env(struct cordon_session *s, const char *const *env, struct cordon_error **reterr)
{
	for (; env && *env; env++) {
		const char *equals = strchr(*env, '=');
		cleanup_free char *name = str_ndup(*env, (size_t)(equals - *env));
		int r = name ? cordon_session_setenv(s, name, equals + 1, reterr)
			     : err_set(reterr, CORDON_NOMEM, "out of memory");

		if (r < 0)
			return r;
	}
	return 0;
}

int e2b_spares_take(struct e2b_spares *s, const struct cordon_policy *policy,
		    const char *const *env, struct cordon_session **ret,
		    struct cordon_error **reterr)
{
	struct cordon_session *session = take_ready(s, policy);
	int r = 0;

	if (session && !cordon_session_is_alive(session))
		session = cordon_session_close(session);
	if (!session)
		r = open_one(policy, &session, reterr);
	if (r == 0)
		r = set_env(session, env, reterr);
	if (r < 0) {
		cordon_session_close(session);
		return r;
	}
	*ret = session;
	return 0;
}

struct cordon_session *e2b_spares_give_back(struct e2b_spares *s, struct cordon_session *session)
{
	pthread_mutex_lock(&s->lock);
	bool is_later = s->closing < CLOSING_MAX && begin(s, NULL, session, close_one);
	s->closing += is_later;
	pthread_mutex_unlock(&s->lock);
	return is_later ? NULL : cordon_session_close(session);
}
