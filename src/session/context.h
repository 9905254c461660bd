/* session/context.h - the contexts of a session with several languages: interpreters with a state
 * of their own in the session's place (place.h). A command is a context for one execution. */
#pragma once

#include "session/session.h"

/* Contexts and commands of one session, the running and the ended ones that nobody has waited for.
 */
enum { CONTEXTS_MAX = 63 };

/* A context that is in the owner's list, but has no guest yet. name "": a command. */
int context_new(struct cordon_session *root, enum guest_kind kind, const char *name,
		struct cordon_session **ret, struct cordon_error **reterr);
/* Ends its execution and frees it. Not while the owner is closed by another thread. */
void context_close(struct cordon_session *c);
/* Steps of closing the owner. No context executes after context_shut_all. */
void context_shut_all(struct cordon_session *root);
void context_free_all(struct cordon_session *root);

/* Adds languages, contexts and processes to the description of a place. */
void context_describe(struct cordon_session *s, json_t *o);

/* A decision about a pending approval of the session or of one of its contexts. */
struct context_verdict {
	const char *id;
	bool allow;
	const char *value_json, *reason;
};
int context_resolve(struct cordon_session *root, const struct context_verdict *v,
		    struct cordon_error **reterr);
