/* wall/init/notify.h - refused system calls that are worth explaining: counted, then refused. */
#pragma once

#include "wall/init/plan.h"

/* Takes one notification and answers it. The answer never lets the call through, except for exec,
 * which Landlock judges right after. */
void notify_answer(struct job *j, int listener);
