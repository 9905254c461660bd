/* inside/lib/prefault.h - copies at once the pages that every session writes to. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Finds out which writable pages that process, a fork of ours, has copied so far. */
void prefault_learn(pid_t pid);
/* In a session: copies them without a fault for each. */
void prefault_copy(void);
