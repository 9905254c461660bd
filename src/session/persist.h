/* session/persist.h - a workspace that outlives its session, under a name that the user chose. */
#pragma once

#include "session/session.h"

struct persist;

/* name NULL: *ret stays NULL, and all below do nothing. Somebody else's hold is an error that names
 * them. */
int persist_open(struct cordon_session *s, const char *name, struct persist **ret,
		 struct cordon_error **reterr);
/* Fills the fresh workspace with what was saved. */
int persist_load(struct persist *p, struct cordon_error **reterr);
/* Saves now what is not saved; the error names the workspace. */
int persist_save(struct persist *p, struct cordon_error **reterr);
/* A warning in the result when the last save failed. */
void persist_warn(struct persist *p, struct cordon_result *result);
/* Something may have changed: it is saved a while later. */
void persist_touch(struct persist *p);
/* Around a change of the session's workspace. */
void persist_lock(struct persist *p);
void persist_unlock(struct persist *p);
/* Saves what is left to save and lets go of the name; the session's workspace must still be there.
 */
struct persist *persist_close(struct persist *p);
