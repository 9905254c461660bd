/* session/idle_watch.h - limits the CPU time that sessions use between executions. Processes that
 * an execution left behind run on, and count with the next execution. If none comes, this counts
 * them, once a second, in one thread for all sessions of the process. */
#pragma once

#include "session/session.h"

/* From now on, until idle_watch_remove. Any thread; the caller has none of the session's locks. */
int idle_watch_add(struct cordon_session *s, struct cordon_error **reterr);
void idle_watch_remove(struct cordon_session *s);
