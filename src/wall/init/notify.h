/* wall/init/notify.h - refused system calls that are worth explaining: counted, then refused. */
#pragma once

#include "wall/init/plan.h"

/* Before the first: the kernel wakes us on the processor of the one that waits (Linux 6.6). */
void notify_prepare(int listener);
/* Takes one notification and answers it. The answer never lets the call through, except for exec,
 * which Landlock judges right after, and for locks while there are not too many. */
void notify_answer(struct job *j, int listener);
