/* base/linux/condvar.c - see condvar.h. */
#include "base/condvar.h"

#include <errno.h>

enum { NS_PER_SECOND = 1000000000 };

void condvar_init(pthread_cond_t *c)
{
	pthread_condattr_t attr;

	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(c, &attr);
	(void)pthread_condattr_destroy(&attr);
}

bool condvar_wait(pthread_cond_t *c, pthread_mutex_t *lock, deadline_ns deadline)
{
	if (deadline == 0) {
		(void)pthread_cond_wait(c, lock);
		return true;
	}
	struct timespec at = { .tv_sec = (time_t)(deadline / NS_PER_SECOND),
			       .tv_nsec = (long)(deadline % NS_PER_SECOND) };
	return pthread_cond_timedwait(c, lock, &at) != ETIMEDOUT;
}
