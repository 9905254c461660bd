/* wall/init/memory.h - the memory limit of a whole sandbox where no control group keeps it: the
 * supervisor, outside and with rights over everything inside, looks and ends what is over. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "wall/init/plan.h"

/* Looks at the sandbox whose pid 1 is given (a template: at each of its sessions). Returns after
 * how many milliseconds to look again; -1: never. */
int memory_look(struct job *j, pid_t init);
/* The process and all below it, itself first; how many. size: at least 4096. */
unsigned memory_tree(pid_t root, pid_t *ret, unsigned size);
