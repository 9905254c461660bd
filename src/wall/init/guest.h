/* wall/init/guest.h - starting the guest's interpreter behind the finished wall. */
#pragma once

#include <sys/types.h>

#include "wall/init/plan.h"

/* Forks, seals and execs. Returns its pid, or -1 with the failure recorded. *ret_listener: its
 * notification descriptor or -1. */
pid_t guest_start(struct job *j, int *ret_listener);
