/* serve/http/workers.h - threads that run what may block. They start when they are needed and end
 * when they were idle for some seconds. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct workers;

/* max: threads at the same time. */
int workers_new(unsigned max, struct workers **ret, struct cordon_error **reterr);
/* Waits for all jobs. Accepts NULL; always returns NULL. */
struct workers *workers_free(struct workers *w);
/* Any thread may call it. Jobs beyond max wait their turn. False: there is no memory, or no thread
 * at all. */
bool workers_run(struct workers *w, void (*fn)(void *arg), void *arg);
