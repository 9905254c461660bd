/* wall/linux/processes.h - what the processes of a sandbox use and do, read while they run. */
#pragma once

#include "wall/wall.h"

uint64_t processes_cpu_us(struct box *box, enum box_cpu of);
uint64_t processes_count(struct box *box, enum box_processes which, uint64_t enough);
bool processes_are_stopped(const struct box *box);
