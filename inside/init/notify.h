/* inside/init/notify.h - answers the filter's notifications: records refused system calls for the
 * result, then refuses them. */
#pragma once

#include "inside/init/plan.h"

/* Call before the first one: the kernel then wakes us on the waiting process's CPU (Linux 6.6). */
void notify_prepare(int listener);
/* Answers one notification. The answer refuses the call, except for exec, which Landlock decides
 * right after, and for file locks below the limit. */
void notify_answer(struct job *j, int listener);
