/* serve/rpc/client_context.c - the client sessions of contexts (client_session.h). */
#include <cordon/command.h>

#include "base/mem.h"
#include "base/str.h"
#include "serve/rpc/client_session.h"

/* The one for this session, or NULL. The lock is held. */
static struct client_session *find(const struct client_sessions *t,
				   const struct cordon_session *session)
{
	for (struct client_session *s = t->first; s; s = s->next)
		if (s->session == session && !s->is_closing)
			return s;
	return NULL;
}

/* Adds one for a context, with a reference to its owner. The lock is held. */
static struct client_session *add(struct client_sessions *t, struct client_session *owner,
				  struct cordon_session *session)
{
	struct client_session *s = mem_alloc(sizeof(*s));

	if (!s)
		return NULL;
	*s = (struct client_session){
		.kind = CLIENT_SESSION_SESSION, .owner = owner, .session = session, .refs = 1
	};
	(void)str_copy(s->id, sizeof(s->id), cordon_session_id(session));
	owner->refs++;
	s->next = t->first;
	t->first = s;
	return s;
}

/* While a context is made none is closed, and the other way round. Otherwise this thread could find
 * a context that another one is about to free. */
int client_session_context(struct client_sessions *t, struct client_session *owner,
			   const char *language, const char *name, struct client_session **ret,
			   struct cordon_error **reterr)
{
	struct cordon_session *session = NULL;
	struct client_session *s = NULL;

	while (owner->owner) /* never changes */
		owner = owner->owner;
	pthread_mutex_lock(&t->lock);
	while ((owner->is_changing || owner->leaving > 0) && !owner->is_closing)
		pthread_cond_wait(&t->changed, &t->lock);
	bool is_closing = owner->is_closing || t->is_closing;
	owner->is_changing = !is_closing;
	pthread_mutex_unlock(&t->lock);
	if (is_closing)
		return err_set(reterr, CORDON_STATE, "Session is not running.");
	int r = cordon_session_context(owner->session, language, name, &session, reterr);
	pthread_mutex_lock(&t->lock);
	owner->is_changing = false;
	pthread_cond_broadcast(&t->changed);
	if (r == 0 && !(s = find(t, session)) && !owner->is_closing)
		s = add(t, owner, session);
	if (s)
		s->refs++;
	pthread_mutex_unlock(&t->lock);
	if (r == 0 && !s)
		r = err_set(reterr, CORDON_STATE, "Session is not running.");
	if (r == 0)
		*ret = s;
	return r;
}
