/* serve/rpc/client_session.c - see client_session.h. */
#include "serve/rpc/client_session.h"

#include <cordon/files.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/condvar.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "serve/rpc/session_quota.h"

enum { CANCEL_AGAIN_MS = 5 };

void client_sessions_init(struct client_sessions *t)
{
	*t = (struct client_sessions){ .max = CLIENT_SESSION_SESSIONS_MAX };
	pthread_mutex_init(&t->lock, NULL);
	condvar_init(&t->changed);
}

void client_sessions_done(struct client_sessions *t)
{
	free(t->loss);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
}

static int check_room(const struct client_sessions *t, enum client_session_kind kind, bool is_fork,
		      struct cordon_error **reterr)
{
	if (t->is_closing)
		return err_set(reterr, CORDON_STATE, "the client is gone");
	if (is_fork && t->forks >= CLIENT_SESSION_FORKS_MAX)
		return err_set(reterr, CORDON_INVALID, "maximum of %d forks reached",
			       CLIENT_SESSION_FORKS_MAX);
	if (kind == CLIENT_SESSION_SESSION && t->sessions >= t->max)
		return err_set(reterr, CORDON_LIMIT, "maximum of %u sessions reached", t->max);
	if (kind == CLIENT_SESSION_POOL && t->pools >= CLIENT_SESSION_POOLS_MAX)
		return err_set(reterr, CORDON_LIMIT, "maximum of %d pools reached",
			       CLIENT_SESSION_POOLS_MAX);
	return 0;
}

static void count(struct client_sessions *t, const struct client_session *s, int by)
{
	bool is_own = !s->lender && !s->owner;

	if (by < 0)
		session_quota_give_back(t->quota, s->memory, s->places);
	if (!is_own)
		return;
	if (s->kind == CLIENT_SESSION_POOL)
		t->pools += (unsigned)by;
	else
		t->sessions += (unsigned)by;
	if (s->is_fork)
		t->forks += (unsigned)by;
}

/* places: of the quota; a pool's sessions are all made in advance. */
static int make(struct client_sessions *t, enum client_session_kind kind, bool is_fork,
		unsigned places, struct client_session **ret, struct cordon_error **reterr)
{
	struct client_session *s = mem_alloc(sizeof(*s));

	if (!s)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	s->kind = kind;
	s->is_fork = is_fork;
	s->places = places;
	s->refs = 2;
	s->used_ns = clock_now_ns();
	int r = session_quota_take(t->quota, places, reterr);
	if (r == 0) {
		pthread_mutex_lock(&t->lock);
		r = check_room(t, kind, is_fork, reterr);
		if (r == 0) {
			count(t, s, 1);
			s->next = t->first;
			t->first = s;
		}
		pthread_mutex_unlock(&t->lock);
		if (r < 0)
			session_quota_give_back(t->quota, 0, places);
	}
	if (r < 0) {
		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int client_session_new(struct client_sessions *t, bool is_fork, struct client_session **ret,
		       struct cordon_error **reterr)
{
	return make(t, CLIENT_SESSION_SESSION, is_fork, 1, ret, reterr);
}

int client_session_new_pool(struct client_sessions *t, unsigned sessions,
			    struct client_session **ret, struct cordon_error **reterr)
{
	return make(t, CLIENT_SESSION_POOL, false, sessions, ret, reterr);
}

int client_session_lend(struct client_sessions *t, struct client_session *pool,
			struct cordon_session *session, struct client_session **ret,
			struct cordon_error **reterr)
{
	struct client_session *s = mem_alloc(sizeof(*s));
	int r = 0;

	if (!s)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	*s = (struct client_session){
		.kind = CLIENT_SESSION_SESSION, .lender = pool, .session = session, .refs = 2
	};
	(void)str_copy(s->id, sizeof(s->id), cordon_session_id(session));
	pthread_mutex_lock(&t->lock);
	if (t->is_closing || pool->is_closing) {
		r = err_set(reterr, CORDON_STATE, "Pool is closed.");
	} else {
		pool->refs++;
		s->next = t->first;
		t->first = s;
	}
	pthread_mutex_unlock(&t->lock);
	if (r < 0) {
		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void client_session_open_session(struct client_sessions *t, struct client_session *s,
				 struct cordon_session *session)
{
	pthread_mutex_lock(&t->lock);
	(void)str_copy(s->id, sizeof(s->id), cordon_session_id(session));
	s->session = session;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

void client_session_open_pool(struct client_sessions *t, struct client_session *s,
			      struct cordon_pool *pool)
{
	char tail[17];

	random_hex(tail, 16);
	pthread_mutex_lock(&t->lock);
	snprintf(s->id, sizeof(s->id), "pool_%u_%s", ++t->pool_count, tail);
	s->pool = pool;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

static void unlink_session(struct client_sessions *t, struct client_session *s)
{
	for (struct client_session **p = &t->first; *p; p = &(*p)->next)
		if (*p == s) {
			*p = s->next;
			s->refs--;
			count(t, s, -1);
			return;
		}
}

void client_session_fail(struct client_sessions *t, struct client_session *s)
{
	pthread_mutex_lock(&t->lock);
	s->is_failed = true;
	unlink_session(t, s);
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
	client_session_put(t, s);
}

static bool is_open(const struct client_session *s)
{
	return s->session || s->pool || s->is_offloaded;
}

struct client_session *client_session_get(struct client_sessions *t, const char *id,
					  enum client_session_kind kind)
{
	struct client_session *found = NULL;

	pthread_mutex_lock(&t->lock);
	for (struct client_session *s = t->first; s && !found; s = s->next)
		if (s->kind == kind && is_open(s) && !s->is_closing && str_eq(s->id, id)) {
			s->refs++;
			s->used_ns = clock_now_ns();
			found = s;
		}
	pthread_mutex_unlock(&t->lock);
	return found;
}

struct client_session *client_session_ref(struct client_sessions *t, struct client_session *s)
{
	pthread_mutex_lock(&t->lock);
	s->refs++;
	pthread_mutex_unlock(&t->lock);
	return s;
}

bool client_session_wait_open(struct client_sessions *t, struct client_session *s)
{
	pthread_mutex_lock(&t->lock);
	while (!is_open(s) && !s->is_failed)
		pthread_cond_wait(&t->changed, &t->lock);
	bool good = is_open(s) && !s->is_closing;
	pthread_mutex_unlock(&t->lock);
	return good;
}

void client_session_put(struct client_sessions *t, struct client_session *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&t->lock);
	bool is_last = --s->refs == 0;
	s->used_ns = clock_now_ns();
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
	if (!is_last)
		return;
	json_decref(s->open_params);
	json_decref(s->history);
	free(s->state);
	json_decref(s->label);
	json_decref(s->request);
	free(s);
}

/* Called with the lock held. */
static int begin(struct client_session *s, json_t *request, struct cordon_error **reterr)
{
	if (s->is_closing)
		return err_set(reterr, CORDON_STATE, "Session is not running.");
	if (s->execution)
		return err_set(
			reterr, CORDON_STATE,
			"a session does not support concurrent execute() calls; wait for the "
			"current execution to complete.");
	/* A copy: the thread of the request frees the original, others look at this one. */
	json_t *copy = request ? json_deep_copy(request) : NULL;
	if (request && !copy)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	s->execution = ++s->executions;
	s->is_unwanted = false;
	json_decref(s->request);
	s->request = copy;
	return 0;
}

int client_session_begin(struct client_sessions *t, struct client_session *s, json_t *request,
			 struct cordon_error **reterr)
{
	pthread_mutex_lock(&t->lock);
	int r = begin(s, request, reterr);
	pthread_mutex_unlock(&t->lock);
	return r;
}

void client_session_end(struct client_sessions *t, struct client_session *s)
{
	pthread_mutex_lock(&t->lock);
	s->execution = 0;
	s->is_exchanging = false;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

/* A context is suspended with its sandbox. */
static bool is_suspended(const struct client_session *s)
{
	return s->is_suspended || (s->owner && s->owner->is_suspended);
}

bool client_session_is_busy(const struct client_sessions *t, const struct client_session *s)
{
	bool is_busy = s->execution;

	for (const struct client_session *c = t->first; c && !is_busy; c = c->next)
		is_busy = c->owner == s && c->execution;
	return is_busy;
}

int client_session_pass(struct client_sessions *t, struct client_session *s,
			struct cordon_error **reterr)
{
	pthread_mutex_lock(&t->lock);
	while (is_suspended(s) && !s->is_closing && !s->is_unwanted && !t->is_draining)
		pthread_cond_wait(&t->changed, &t->lock);
	bool passes = !is_suspended(s);
	pthread_mutex_unlock(&t->lock);
	return passes ? 0
		      : err_set(reterr, CORDON_CANCELLED,
				"cancelled while the session was suspended");
}

int client_session_suspend(struct client_sessions *t, struct client_session *s,
			   struct cordon_error **reterr)
{
	pthread_mutex_lock(&t->lock);
	bool is_idle = !client_session_is_busy(t, s) || s->is_suspended;
	if (is_idle)
		s->is_suspended = true;
	pthread_mutex_unlock(&t->lock);
	return is_idle ? 0
		       : err_set(reterr, CORDON_STATE, "Cannot suspend while a command is running");
}

void client_session_resume(struct client_sessions *t, struct client_session *s)
{
	pthread_mutex_lock(&t->lock);
	s->is_suspended = false;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

void client_sessions_drain(struct client_sessions *t)
{
	pthread_mutex_lock(&t->lock);
	t->is_draining = true;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

/* Waits for a change, or for a short time. */
static void wait_little(struct client_sessions *t)
{
	(void)condvar_wait(&t->changed, &t->lock, deadline_after_ms(CANCEL_AGAIN_MS));
}

int client_session_begin_in_turn(struct client_sessions *t, struct client_session *s,
				 json_t *request, bool (*is_over)(void *arg), void *arg,
				 struct cordon_error **reterr)
{
	bool was_over = false;
	int r;

	pthread_mutex_lock(&t->lock);
	while (s->execution && !s->is_closing && !(was_over = is_over(arg)))
		wait_little(t);
	r = was_over ? err_set(reterr, CORDON_CANCELLED, "the call was cancelled")
		     : begin(s, request, reterr);
	pthread_mutex_unlock(&t->lock);
	return r;
}

/* The execution may have been accepted but not started. A single cancel would then be lost, so it
 * is repeated until the execution is over. */
static bool cancel_locked(struct client_sessions *t, struct client_session *s, uint64_t number)
{
	s->is_unwanted = true;
	pthread_cond_broadcast(&t->changed);
	while (s->execution == number && !s->is_exchanging) {
		if (s->session)
			(void)cordon_session_cancel(s->session, NULL);
		wait_little(t);
	}
	return s->execution != number;
}

bool client_session_cancel(struct client_sessions *t, struct client_session *s)
{
	pthread_mutex_lock(&t->lock);
	uint64_t number = s->execution;
	bool was_ended = number && cancel_locked(t, s, number);
	pthread_mutex_unlock(&t->lock);
	return was_ended;
}

struct client_session *client_session_by_request(struct client_sessions *t, const json_t *request)
{
	struct client_session *found = NULL;

	pthread_mutex_lock(&t->lock);
	for (struct client_session *s = t->first; s && !found; s = s->next)
		if (s->execution && s->request && json_equal(s->request, request)) {
			s->refs++;
			found = s;
		}
	pthread_mutex_unlock(&t->lock);
	return found;
}

char *client_session_request(struct client_sessions *t, const char *session)
{
	char *text = NULL;

	pthread_mutex_lock(&t->lock);
	for (struct client_session *s = t->first; s && !text; s = s->next)
		if (s->execution && s->request && s->session &&
		    str_eq(cordon_session_id(s->session), session))
			text = json_text(s->request, NULL);
	pthread_mutex_unlock(&t->lock);
	return text;
}

void client_session_name(struct client_sessions *t, const char *session,
			 char ret[CLIENT_SESSION_ID_BYTES])
{
	(void)str_copy(ret, CLIENT_SESSION_ID_BYTES, session);
	pthread_mutex_lock(&t->lock);
	for (struct client_session *s = t->first; s; s = s->next)
		if (s->session && str_eq(cordon_session_id(s->session), session))
			(void)str_copy(ret, CLIENT_SESSION_ID_BYTES, s->id);
	pthread_mutex_unlock(&t->lock);
}

static bool is_part_of(const struct client_session *s, const void *whole)
{
	return !s->is_closing && (s->lender == whole || s->owner == whole);
}

/* The lock is released while one closes, so the list is read from its start after each. */
static void close_each(struct client_sessions *t,
		       bool (*fits)(const struct client_session *s, const void *arg),
		       const void *arg)
{
	struct client_session *s = t->first;

	while (s) {
		if (!fits(s, arg)) {
			s = s->next;
			continue;
		}
		s->refs++;
		pthread_mutex_unlock(&t->lock);
		client_session_close(t, s);
		pthread_mutex_lock(&t->lock);
		s = t->first;
	}
}

static bool is_running_part_of(const struct client_session *s, const void *whole)
{
	return is_part_of(s, whole) && s->execution;
}

int client_session_lock(struct client_sessions *t, struct client_session *s, unsigned others,
			struct cordon_error **reterr)
{
	pthread_mutex_lock(&t->lock);
	s->is_moving = true;
	pthread_cond_broadcast(&t->changed);
	/* client_session_cancel and client_session_close may be waiting for the end of this
	 * execution while they hold a reference. Both set a flag first; then this function gives
	 * up. */
	close_each(t, is_running_part_of, s);
	while (client_session_users(t, s) > 1 + others && !s->is_closing && !s->is_unwanted) {
		wait_little(t);
		close_each(t, is_running_part_of, s);
	}
	bool gives_way = s->is_closing || s->is_unwanted;
	s->is_moving = s->is_exchanging = !gives_way;
	pthread_mutex_unlock(&t->lock);
	return gives_way ? err_set(reterr, CORDON_CANCELLED,
				   "cancelled while others used the session")
			 : 0;
}

struct cordon_session *client_session_unlock(struct client_sessions *t, struct client_session *s,
					     struct cordon_session *session)
{
	pthread_mutex_lock(&t->lock);
	struct cordon_session *old = s->session;
	if (session != old) /* while it is moving nobody makes another */
		close_each(t, is_part_of, s);
	s->session = session;
	s->is_offloaded = !session;
	s->is_moving = false;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
	return old;
}

/* Waits until nobody else uses the client session, which is no longer in the table. Called with the
 * lock held. */
static void wait_alone(struct client_sessions *t, struct client_session *s)
{
	while (s->refs > 1 || (!is_open(s) && !s->is_failed)) {
		if (s->execution && s->session)
			(void)cordon_session_kill(s->session, NULL);
		wait_little(t);
	}
}

/* Keeps the first loss, which names what was lost. */
static void note_loss(struct client_sessions *t, const struct cordon_error *e)
{
	char *text = err_text(e);

	pthread_mutex_lock(&t->lock);
	if (t->loss)
		free(text);
	else
		t->loss = text;
	pthread_mutex_unlock(&t->lock);
}

char *client_sessions_take_loss(struct client_sessions *t)
{
	pthread_mutex_lock(&t->lock);
	char *text = TAKE_PTR(t->loss);
	pthread_mutex_unlock(&t->lock);
	return text;
}

static void leave_owner(struct client_sessions *t, struct client_session *owner)
{
	pthread_mutex_lock(&t->lock);
	owner->leaving--;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
	client_session_put(t, owner);
}

static void end_session(struct client_sessions *t, struct client_session *s)
{
	cleanup_error struct cordon_error *e = NULL;

	s->project = cordon_project_close(s->project);
	if (s->owner) {
		cordon_session_close(s->session);
		leave_owner(t, s->owner);
	} else if (s->lender && s->session) {
		cordon_pool_release(s->lender->pool, s->session);
		client_session_put(t, s->lender);
	} else {
		if (cordon_session_end(s->session, &e) < 0)
			note_loss(t, e);
	}
	s->session = NULL;
	s->pool = cordon_pool_free(s->pool);
}

static bool is_of_kind(const struct client_session *s, const void *kind)
{
	return s->kind == *(const enum client_session_kind *)kind && !s->is_closing;
}

void client_session_close(struct client_sessions *t, struct client_session *s)
{
	pthread_mutex_lock(&t->lock);
	while (s->owner && s->owner->is_changing) /* it may be just this context */
		pthread_cond_wait(&t->changed, &t->lock);
	if (s->is_closing) { /* another thread closes it */
		pthread_mutex_unlock(&t->lock);
		client_session_put(t, s);
		return;
	}
	s->is_closing = true;
	if (s->owner)
		s->owner->leaving++;
	pthread_cond_broadcast(&t->changed);
	unlink_session(t, s);
	close_each(t, is_part_of, s); /* what a pool has lent ends with it, as do contexts */
	wait_alone(t, s);
	pthread_mutex_unlock(&t->lock);
	end_session(t, s);
	client_session_put(t, s);
}

void client_sessions_close(struct client_sessions *t)
{
	pthread_mutex_lock(&t->lock);
	t->is_closing = true;
	/* Ends all executions at once, then closes the sessions one by one. Pools come last,
	 * because their sessions may be lent. */
	for (struct client_session *s = t->first; s; s = s->next)
		if (s->execution && s->session)
			(void)cordon_session_kill(s->session, NULL);
	for (enum client_session_kind kind = CLIENT_SESSION_SESSION; kind <= CLIENT_SESSION_POOL;
	     kind++)
		close_each(t, is_of_kind, &kind);
	pthread_mutex_unlock(&t->lock);
}

void client_sessions_visit(struct client_sessions *t,
			   void (*fn)(const struct client_session *s, void *arg), void *arg)
{
	pthread_mutex_lock(&t->lock);
	for (const struct client_session *s = t->first; s; s = s->next)
		if (s->kind == CLIENT_SESSION_SESSION && is_open(s) && !s->is_closing && !s->owner)
			fn(s, arg);
	pthread_mutex_unlock(&t->lock);
}
