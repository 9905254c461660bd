/* session/timeline.h - the times of a session's steps, for bench/. Each costs one clock read. Steps
 * inside the sandbox are marked on the status page (wall/linux/format.h). */
#pragma once

#include <stddef.h>

#include "base/clock.h"

enum timeline_mark {
	TIMELINE_OPEN,      /* a caller asked for a session */
	TIMELINE_PREPARED,  /* its policy, tool calls, audit log and welcome are ready */
	TIMELINE_TEMPLATE,  /* the template was found */
	TIMELINE_RESOURCES, /* pipes, sockets, control groups and status page are ready */
	TIMELINE_ASKED,     /* the spawn request was sent */
	TIMELINE_ROOT,      /* the root is ready: the workspace's descriptor has arrived */
	TIMELINE_HELLO,     /* the guest's hello has arrived */
	TIMELINE_OPENED,    /* the caller has the session */
	TIMELINE_EXECUTE,   /* a caller asked for an execution */
	TIMELINE_SENT,      /* the code was sent */
	TIMELINE_ANSWERED,  /* the result was read */
	TIMELINE_CONCLUDED, /* the caller has the result */
	TIMELINE_COUNT
};

struct timeline {
	uint64_t at[TIMELINE_COUNT]; /* monotonic clock, in nanoseconds; 0: not reached */
};

static inline void timeline_mark(struct timeline *t, enum timeline_mark m)
{
	if (t)
		t->at[m] = clock_now_ns();
}
