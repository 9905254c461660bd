/* session/cputime.h - CPU time that a sandbox has used so far, also while it runs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wall/box.h"

/* Microseconds; 0 when it cannot be told. is_agent: others work for the guest's process. */
uint64_t cputime_of(struct box *b, bool is_agent);
/* How many processes the sandbox has now, its pid 1 among them; counted until there are enough. */
unsigned cputime_processes(struct box *b, unsigned enough);
