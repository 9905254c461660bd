/* session/idle_watch.h - limits the CPU time that a session uses between executions. Processes that
 * an execution left behind keep running; their time is added to the next execution. If none
 * follows, this thread checks them once a second. One thread serves all sessions of the process. */
#pragma once

#include "session/session.h"

/* Watches the session until idle_watch_remove. Any thread may call it, holding none of the
 * session's locks. */
int idle_watch_add(struct cordon_session *s, struct cordon_error **reterr);
void idle_watch_remove(struct cordon_session *s);
