/* inside/init/locks.h - counts the guest's file locks. The kernel does not charge them to a cgroup,
 * so the filter notifies pid 1 of each call that may leave one. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "inside/init/plan.h"

/* Whether one more call is allowed: each leaves at most two locks. */
bool locks_may_add(const struct job *j);
/* Whether a task may take a flock, which needs no write permission. Not on read-only mounts, where
 * a host program could have to wait for the guest. */
bool locks_may_flock(const struct job *j, pid_t task, int fd);
