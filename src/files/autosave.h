/* files/autosave.h - saves a workspace some time after the last change, in its own thread. */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct autosave;

typedef int (*autosave_fn)(void *arg, struct cordon_error **reterr);

/* delay_ms: after the last change, 0: 1000; changes that never pause are saved every ten delays. */
int autosave_new(uint64_t delay_ms, autosave_fn save, void *arg, struct autosave **ret,
		 struct cordon_error **reterr);
/* Something changed. Cheap; from any thread. */
void autosave_touch(struct autosave *a);
/* Saves now if anything changed since the last save that worked: one that failed in the background
 * is tried again. 0: all is saved. */
int autosave_flush(struct autosave *a, struct cordon_error **reterr);
/* Why the last save failed, to be freed; NULL: it did not. */
char *autosave_failure(struct autosave *a);
/* Saves what changed since the last save, then ends. To learn whether that worked, flush first.
 * Accepts NULL; always returns NULL. */
struct autosave *autosave_free(struct autosave *a);

DEFINE_FREEP(struct autosave *, autosave_free)
#define cleanup_autosave CLEANUP(autosave_freep)
