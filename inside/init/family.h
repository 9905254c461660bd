/* inside/init/family.h - ends one guest of a place with the processes that it started. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { FAMILY_MOST = 4096 };

/* Kills the process, its descendants, and what is in the session that it leads, and all their
 * descendants. ret (FAMILY_MOST entries) gets the killed processes, which the caller may still
 * have to reap. False: there are too many, or new ones appear all the time; nothing was killed. */
bool family_end(pid_t leader, pid_t *ret, unsigned *ret_count);
/* Whether it has ended. A parent outside the family may never reap it. */
bool family_is_gone(pid_t pid);
