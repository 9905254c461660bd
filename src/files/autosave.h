/* files/autosave.h - saving a while after the last change, in a thread of its own. */
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
/* Saves now if anything changed since the last save; what went wrong in the background since the
 * last flush comes out here too. */
int autosave_flush(struct autosave *a, struct cordon_error **reterr);
/* Flushes, then ends. Accepts NULL; always returns NULL. */
struct autosave *autosave_free(struct autosave *a);

DEFINE_FREEP(struct autosave *, autosave_free)
#define cleanup_autosave CLEANUP(autosave_freep)
