/* session/pulse.h - waits for a sandbox that starts, and notices if its processes were stopped
 * (SIGSTOP): they neither answer nor end. */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/error.h"
#include "wall/box.h"

struct pulse {
	const struct box *carrier; /* whose processes do the work; NULL: nobody is looked at */
	deadline_ns deadline;
	unsigned stops; /* how often it was found stopped, one after the other */
};

struct pulse pulse_begin(const struct box *carrier, deadline_ns deadline);
/* Waits until the descriptor is readable or at its end. -CORDON_TIMEOUT: time is up; -CORDON_STATE:
 * the carrier was stopped; -CORDON_OS: poll failed. */
int pulse_wait(struct pulse *p, int fd, short events, struct cordon_error **reterr);
/* box_wait_ready() likewise. */
int pulse_wait_ready(struct pulse *p, struct box *b, struct cordon_error **reterr);
/* Whether one of its processes is stopped now. */
bool pulse_is_stopped(const struct box *b);
