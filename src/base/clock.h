/* base/clock.h - monotonic time, deadlines, and wall time for logs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

uint64_t clock_now_ns(void); /* CLOCK_MONOTONIC */

/* A moment on the monotonic clock in nanoseconds; 0: never. */
typedef uint64_t deadline_ns;

deadline_ns deadline_after_ms(uint64_t ms); /* saturates; ms 0 is already over */
bool deadline_is_over(deadline_ns d);
/* For poll(2): milliseconds left, rounded up; 0: over, -1: never; at most INT_MAX. */
int deadline_poll_ms(deadline_ns d);

/* "2024-01-02T03:04:05.678Z" */
enum { CLOCK_UTC_SIZE = 25 };
void clock_utc_text(char ret[static CLOCK_UTC_SIZE]);
/* The same for frequent callers: caches the part that changes once a second. Zero-initialise it. */
struct clock_utc {
	time_t second;
	char text[CLOCK_UTC_SIZE];
};
void clock_utc_again(struct clock_utc *c, char ret[static CLOCK_UTC_SIZE]);
