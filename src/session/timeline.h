/* session/timeline.h - the times of a session's steps, for bench/: one clock read each. Steps
 * inside the sandbox are marked on the status page (wall/format.h). */
#pragma once

#include <stddef.h>

#include "base/clock.h"

enum timeline_mark {
	TIMELINE_OPEN,      /* somebody asked for a session */
	TIMELINE_PREPARED,  /* its policy, tool calls, log and welcome are made */
	TIMELINE_TEMPLATE,  /* a template is found */
	TIMELINE_SEATED,    /* pipes, sockets, control groups and status page are made */
	TIMELINE_ASKED,     /* the spawn request is sent */
	TIMELINE_ROOT,      /* its root stands: the workspace's descriptor is here */
	TIMELINE_HELLO,     /* the guest speaks */
	TIMELINE_OPENED,    /* the caller has the session */
	TIMELINE_EXECUTE,   /* somebody wants code executed */
	TIMELINE_SENT,      /* it is on the wire */
	TIMELINE_ANSWERED,  /* its result is read */
	TIMELINE_CONCLUDED, /* the caller has the result */
	TIMELINE_COUNT
};

struct timeline {
	uint64_t at[TIMELINE_COUNT]; /* of the monotonic clock, in nanoseconds; 0: never */
};

static inline void timeline_mark(struct timeline *t, enum timeline_mark m)
{
	if (t)
		t->at[m] = clock_now_ns();
}
