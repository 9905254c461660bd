/* files/autosave.h - saves a workspace some time after the last change, in its own thread. */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct autosave;

typedef int (*autosave_fn)(void *arg, struct cordon_error **reterr);

/* delay_ms: time from the last change to the save; 0: 1000. Changes without a pause are saved every
 * ten delays. */
int autosave_new(uint64_t delay_ms, autosave_fn save, void *arg, struct autosave **ret,
		 struct cordon_error **reterr);
/* Something changed. Cheap; any thread may call it. */
void autosave_touch(struct autosave *a);
/* Saves now if anything changed since the last successful save. 0: everything is saved. */
int autosave_flush(struct autosave *a, struct cordon_error **reterr);
/* Why the last save failed; the caller frees it. NULL: it did not fail. */
char *autosave_failure(struct autosave *a);
/* Saves unsaved changes and ends the thread. To learn whether that worked, flush first. Accepts
 * NULL; always returns NULL. */
struct autosave *autosave_free(struct autosave *a);

DEFINE_FREEP(struct autosave *, autosave_free)
#define cleanup_autosave CLEANUP(autosave_freep)
