/* inside/init/memory.h - the memory limit of a whole sandbox without a control group. The
 * supervisor, which is outside and may see everything inside, measures it and kills what is over
 * the limit. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "inside/init/plan.h"

/* Measures the sandbox whose pid 1 is given (for a template: each of its sessions). Returns the
 * milliseconds until the next look; -1: never. */
int memory_look(struct job *j, pid_t init);
/* The process and all below it, itself first; how many. size: at least 4096. */
unsigned memory_tree(pid_t root, pid_t *ret, unsigned size);
