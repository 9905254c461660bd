/* session/cputime.h - CPU time that a sandbox has used so far, also while it runs. */
#pragma once

#include <stdint.h>

#include "wall/box.h"

/* Microseconds; 0 when it cannot be told. Of the guest's process alone, which costs a system call;
 * of whatever runs or ran in the sandbox, which costs some for every process. */
uint64_t cputime_of_guest(struct box *b);
uint64_t cputime_of_all(struct box *b);
/* How many processes the sandbox has now, its pid 1 among them; counted until there are enough. */
unsigned cputime_processes(struct box *b, unsigned enough);
