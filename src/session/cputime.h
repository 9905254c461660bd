/* session/cputime.h - CPU time that a sandbox has used so far, also while it runs. */
#pragma once

#include <stdint.h>

#include "wall/linux/box.h"

/* CPU time in microseconds; 0: unknown. _of_guest reads the guest's process alone and costs one
 * system call. _of_all covers everything that runs or ran in the sandbox and may cost several calls
 * per process. */
uint64_t cputime_of_guest(struct box *b);
uint64_t cputime_of_all(struct box *b);
/* How many processes the sandbox has now, including its pid 1. Stops counting at `enough`. */
unsigned cputime_processes(struct box *b, unsigned enough);
