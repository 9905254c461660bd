/* session/pulse.h - waits for a sandbox that is starting, and notices when its processes were
 * stopped (SIGSTOP), since a stopped process neither answers nor ends. */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/error.h"
#include "wall/wall.h"

struct pulse {
	const struct box *carrier; /* whose processes do the work; NULL: do not check */
	deadline_ns deadline;
	unsigned stops; /* how many checks in a row found it stopped */
	/* A guest that joins a place which has no room for its processes may wait for ever. */
	struct box *place; /* NULL: do not check */
	uint64_t tasks_max;
	unsigned fulls; /* how many checks in a row found it full */
};

struct pulse pulse_begin(const struct box *carrier, deadline_ns deadline);
/* Waits until fd is readable or at end of file. -CORDON_TIMEOUT: the deadline passed;
 * -CORDON_STATE: the carrier was stopped; -CORDON_LIMIT: the place was full; -CORDON_OS: poll
 * failed. */
int pulse_wait(struct pulse *p, int fd, short events, struct cordon_error **reterr);
/* The same for box_wait_ready(). */
int pulse_wait_ready(struct pulse *p, struct box *b, struct cordon_error **reterr);
