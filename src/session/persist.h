/* session/persist.h - a workspace that outlives its session, under a name that the user chose. */
#pragma once

#include "session/session.h"

struct persist;

/* name NULL: *ret stays NULL, and the functions below do nothing. If another process uses the name,
 * the error says which. */
int persist_open(struct cordon_session *s, const char *name, struct persist **ret,
		 struct cordon_error **reterr);
/* Restores the saved files into the new workspace. */
int persist_load(struct persist *p, struct cordon_error **reterr);
/* Saves unsaved changes now; an error names the workspace. */
int persist_save(struct persist *p, struct cordon_error **reterr);
/* Adds a warning to the result if the last save failed. */
void persist_warn(struct persist *p, struct cordon_result *result);
/* Files may have changed: schedules a save. */
void persist_touch(struct persist *p);
/* Held around a change of the session's workspace. */
void persist_lock(struct persist *p);
void persist_unlock(struct persist *p);
/* Saves unsaved changes and releases the name. The session's workspace must still exist. */
struct persist *persist_close(struct persist *p);
