/* wall/linux/processes.h - CPU time, number and state of a sandbox's processes, while they run. */
#pragma once

#include "wall/wall.h"

uint64_t processes_cpu_us(struct box *box, enum box_cpu of);
uint64_t processes_count(struct box *box, enum box_processes which, uint64_t enough);
bool processes_are_stopped(const struct box *box);
/* The guest's number in its own pid namespace; 0: unknown. */
pid_t processes_inner_pid(const struct box *box);
int processes_freeze(struct box *box, bool frozen);
