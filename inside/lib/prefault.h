/* inside/lib/prefault.h - the pages that every session writes to, copied in one go. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Looks which pages of the writable memory that process, a fork of ours, has copied by now. */
void prefault_learn(pid_t pid);
/* In a session: copies them, without a fault for each. */
void prefault_copy(void);
