/* wall/init/locks.h - how many file locks the guest has. The kernel charges them to nobody, so the
 * filter tells pid 1 of each call that may leave one. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "wall/init/plan.h"

/* Whether one more call may be made: each leaves at most two locks. */
bool locks_may_add(const struct job *j);
/* Whether a task may lock a file by flock, which needs no right to write it: not what is mounted
 * for reading, where the host would wait for the guest. */
bool locks_may_flock(const struct job *j, pid_t task, int fd);
