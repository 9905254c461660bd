/* inside/init/memory.h - the memory limit of a whole sandbox without a control group. The
 * supervisor is outside and can see all processes inside; it measures them and kills what exceeds
 * the limit. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "inside/init/plan.h"

/* Measures the sandbox with this pid 1 (for a template: each of its sessions). Returns the
 * milliseconds until the next check; -1: never. */
int memory_look(struct job *j, pid_t init);
/* The process and all its descendants, itself first; returns how many. size: at least 4096. */
unsigned memory_tree(pid_t root, pid_t *ret, unsigned size);
