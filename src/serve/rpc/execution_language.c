/* serve/rpc/execution_language.c - see execution_language.h. */
#include "serve/rpc/execution_language.h"

#include "base/language_name.h"
#include "guest/guest.h"
#include "session/session.h"

const char *execution_language_find(struct client_sessions *all, const struct client_session *cs,
				    const json_t *params)
{
	const char *named = json_string_value(json_object_get(params, "language"));
	struct language_name known = { .guest = "other" };

	if (!named && !cs)
		named = json_string_value(json_object_get(params, "guest"));
	pthread_mutex_lock(&all->lock);
	if (!named && cs && cs->session)
		named = guest_name(cs->session->kind);
	else if (!named && cs)
		named = cs->guest;
	(void)language_name_find(named ? named : "python", &known);
	pthread_mutex_unlock(&all->lock);
	return known.guest;
}
