/* serve/rpc/session_quota.c - see session_quota.h. */
#include "serve/rpc/session_quota.h"

#include <inttypes.h>

#include "base/str.h"

int session_quota_begin(struct client_session_quota *quota, struct cordon_error **reterr)
{
	for (struct client_session_quota *q = quota; q; q = q->above) {
		if (atomic_fetch_add(&q->executing, 1) < q->executing_max || !q->executing_max)
			continue;
		atomic_fetch_sub(&q->executing, 1);
		for (struct client_session_quota *p = quota; p != q; p = p->above)
			atomic_fetch_sub(&p->executing, 1);
		return err_set(reterr, CORDON_LIMIT, "maximum of %u executions at once reached",
			       q->executing_max);
	}
	return 0;
}

void session_quota_end(struct client_session_quota *quota)
{
	for (struct client_session_quota *q = quota; q; q = q->above)
		atomic_fetch_sub(&q->executing, 1);
}

bool session_quota_attach(struct client_session_quota *quota, uint64_t bytes)
{
	if (!quota)
		return true;
	uint64_t before = atomic_fetch_add(&quota->attached, bytes);
	bool fits = !quota->attached_max ||
		    (before <= quota->attached_max && bytes <= quota->attached_max - before);
	if (!fits)
		quota->attached -= bytes;
	return fits;
}

void session_quota_detach(struct client_session_quota *quota, uint64_t bytes)
{
	if (quota)
		quota->attached -= bytes;
}

void session_quota_give_back(struct client_session_quota *q, uint64_t memory, unsigned sessions)
{
	for (; q; q = q->above) {
		q->memory -= memory;
		atomic_fetch_sub(&q->used, sessions);
	}
}

/* At the limit, unused sessions are ended to make room. */
static bool take_one(struct client_session_quota *q)
{
	for (unsigned tries = 0; tries <= q->max; tries++) {
		if (atomic_fetch_add(&q->used, 1) < q->max)
			return true;
		atomic_fetch_sub(&q->used, 1);
		if (!q->make_room || !q->make_room(q->arg))
			break;
	}
	return false;
}

static int take(struct client_session_quota *quota, struct cordon_error **reterr)
{
	for (struct client_session_quota *q = quota; q; q = q->above) {
		if (take_one(q))
			continue;
		for (struct client_session_quota *p = quota; p != q; p = p->above)
			atomic_fetch_sub(&p->used, 1);
		return err_set(reterr, CORDON_LIMIT,
			       "maximum of %u sessions of all clients reached", q->max);
	}
	return 0;
}

int session_quota_take(struct client_session_quota *quota, unsigned sessions,
		       struct cordon_error **reterr)
{
	int r = 0;

	/* More than there may ever be is refused: nobody should wait and try again. */
	for (const struct client_session_quota *q = quota; q; q = q->above)
		if (sessions > q->max)
			return err_set(reterr, CORDON_DENIED,
				       "these are %u sessions; there may be %u sessions at once",
				       sessions, q->max);
	for (unsigned i = 0; i < sessions && r == 0; i++) {
		r = take(quota, reterr);
		if (r < 0)
			session_quota_give_back(quota, 0, i);
	}
	return r;
}

int client_session_charge(struct client_sessions *t, struct client_session *s, uint64_t bytes,
			  struct cordon_error **reterr)
{
	struct client_session_quota *q;

	/* Not even if all others ended. */
	for (q = t->quota; q; q = q->above)
		if (q->memory_max && bytes > q->memory_max)
			return err_set(reterr, CORDON_DENIED,
				       "this may use %" PRIu64 " bytes of memory, but all sessions "
				       "together only %" PRIu64 ": set memory_bytes",
				       bytes, q->memory_max);
	for (q = t->quota; q; q = q->above)
		if (atomic_fetch_add(&q->memory, bytes) + bytes > q->memory_max && q->memory_max)
			break;
	if (!q) {
		pthread_mutex_lock(&t->lock);
		s->memory += bytes;
		pthread_mutex_unlock(&t->lock);
		return 0;
	}
	uint64_t max = q->memory_max;
	q->memory -= bytes;
	for (struct client_session_quota *p = t->quota; p != q; p = p->above)
		p->memory -= bytes;
	return err_set(reterr, CORDON_LIMIT,
		       "all sessions together may use %" PRIu64 " bytes of memory", max);
}

void client_session_discharge(struct client_sessions *t, struct client_session *s)
{
	pthread_mutex_lock(&t->lock);
	session_quota_give_back(t->quota, s->memory, 0);
	s->memory_offloaded = s->memory;
	s->memory = 0;
	pthread_mutex_unlock(&t->lock);
}

int client_session_restore(struct client_sessions *t, const char *id, json_t *params,
			   uint64_t memory, struct cordon_error **reterr)
{
	cleanup_json json_t *owned = params;
	struct client_session *s = NULL;
	int r = client_session_new(t, false, &s, reterr);

	if (r < 0)
		return r;
	pthread_mutex_lock(&t->lock);
	(void)str_copy(s->id, sizeof(s->id), id);
	s->open_params = TAKE_PTR(owned);
	s->memory_offloaded = memory;
	s->is_offloaded = true;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
	client_session_put(t, s);
	return 0;
}
