/* session/idle_watch.h - CPU time that sessions use while nobody executes anything in them. What an
 * execution left behind runs on, and is counted with the next one; where there is none, this counts
 * it, once a second, in one thread for all sessions of the process. */
#pragma once

#include "session/session.h"

/* From now on, until idle_watch_remove. Any thread; the caller has none of the session's locks. */
int idle_watch_add(struct cordon_session *s, struct cordon_error **reterr);
void idle_watch_remove(struct cordon_session *s);
