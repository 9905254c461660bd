/* serve/e2b/e2b_watch.h - directories that clients watch. A stream gets its events from the ticker;
 * a watcher without one is asked for them. */
#pragma once

#include "serve/e2b/e2b_sandbox.h"

enum { E2B_WATCH_POLL_MS = 25 };

/* Sends what has changed to the streams of all sandboxes. Returns whether there is one. */
bool e2b_watch_poll(struct e2b *e);
/* Ends the streams and forgets all watchers. */
void e2b_watch_end_all(struct e2b_sandbox *b);
