/* base/condvar.h - condition variables with waits by the monotonic clock: setting the wall clock
 * neither ends nor prolongs a wait. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"

void condvar_init(pthread_cond_t *c);
/* With the lock held, as pthread_cond_wait: wakes up for nothing at times. false: the deadline is
 * over. */
bool condvar_wait(pthread_cond_t *c, pthread_mutex_t *lock, deadline_ns deadline);
