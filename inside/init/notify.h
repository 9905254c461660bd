/* inside/init/notify.h - counts refused system calls that the result explains, then refuses them.
 */
#pragma once

#include "inside/init/plan.h"

/* Before the first: the kernel wakes us on the processor of the one that waits (Linux 6.6). */
void notify_prepare(int listener);
/* Takes one notification and answers it. The answer refuses the call, except for exec, which
 * Landlock decides right after, and for file locks below the limit. */
void notify_answer(struct job *j, int listener);
