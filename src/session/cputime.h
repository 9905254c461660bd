/* session/cputime.h - CPU time that a sandbox has used so far, also while it runs. */
#pragma once

#include <stdint.h>

#include "wall/box.h"

/* Microseconds; 0 when it cannot be told. */
uint64_t cputime_of(struct box *b);
