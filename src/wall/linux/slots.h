/* wall/linux/slots.h - control groups of closed sessions, reused by the next session of the same
 * template. Checking that they are empty is cheaper than making and removing groups. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "wall/linux/cgroup.h"

enum { SLOTS_MAX = 8 };

struct slots {
	pthread_mutex_t lock;
	struct cgroup groups[SLOTS_MAX]; /* the oldest first */
	unsigned count;
};

void slots_init(struct slots *s);
/* Removes them all. */
void slots_done(struct slots *s);
/* Returns groups that are empty and carry nothing from their earlier use; false: none. */
bool slots_take(struct slots *s, struct cgroup *ret);
/* Takes ownership of groups whose processes are dead or dying. */
void slots_give(struct slots *s, struct cgroup *c);
