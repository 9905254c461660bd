/* serve/rpc/session_expiry.c - ends sessions that were not used for long (client_session.h). */
#include "base/str.h"
#include "serve/rpc/client_session.h"

/* The table has one reference to each, and each context one to its owner. */
unsigned client_session_users(const struct client_sessions *t, const struct client_session *s)
{
	unsigned users = s->refs - 1;

	for (const struct client_session *c = t->first; c; c = c->next)
		if (c->owner == s)
			users = users + (c->refs - 1) - 1;
	return users;
}

bool client_session_is_unused(const struct client_sessions *t, const struct client_session *s)
{
	return client_session_users(t, s) == 0 && !client_session_is_busy(t, s);
}

/* The least recently used session that may be ended, and how many there are. */
static struct client_session *find_oldest(struct client_sessions *t, bool only_implicit,
					  unsigned *ret_count)
{
	struct client_session *oldest = NULL;

	*ret_count = 0;
	for (struct client_session *s = t->first; s; s = s->next) {
		if (s->kind != CLIENT_SESSION_SESSION || !s->session || s->lender || s->owner ||
		    s->is_closing || (only_implicit && !s->is_implicit))
			continue;
		++*ret_count;
		if (client_session_is_unused(t, s) && (!oldest || s->used_ns < oldest->used_ns))
			oldest = s;
	}
	return oldest;
}

uint64_t client_sessions_oldest_ns(struct client_sessions *t)
{
	unsigned count;

	pthread_mutex_lock(&t->lock);
	const struct client_session *s = find_oldest(t, false, &count);
	uint64_t ns = s ? s->used_ns : UINT64_MAX;
	pthread_mutex_unlock(&t->lock);
	return ns;
}

bool client_session_drop(struct client_sessions *t, const char *id)
{
	struct client_session *s;

	pthread_mutex_lock(&t->lock);
	for (s = t->first; s && !str_eq(s->id, id); s = s->next)
		;
	bool is_asleep = s && s->is_offloaded && !s->is_moving && !s->is_closing && s->refs == 1;
	if (is_asleep)
		s->refs++;
	pthread_mutex_unlock(&t->lock);
	if (is_asleep)
		client_session_close(t, s);
	return is_asleep || !s;
}

void client_sessions_expire(struct client_sessions *t, uint64_t before_ns, bool only_implicit,
			    unsigned keep)
{
	for (;;) {
		unsigned count;
		pthread_mutex_lock(&t->lock);
		struct client_session *s = find_oldest(t, only_implicit, &count);
		if (s && (count <= keep || s->used_ns >= before_ns))
			s = NULL;
		if (s)
			s->refs++;
		pthread_mutex_unlock(&t->lock);
		if (!s)
			return;
		client_session_close(t, s);
	}
}
