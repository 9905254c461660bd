/* base/condvar.h - condition variables that wait on the monotonic clock: setting the wall clock
 * neither ends nor prolongs a wait. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"

void condvar_init(pthread_cond_t *c);
/* Called with the lock held. Like pthread_cond_wait, it may wake up spuriously. False: the deadline
 * passed. */
bool condvar_wait(pthread_cond_t *c, pthread_mutex_t *lock, deadline_ns deadline);
