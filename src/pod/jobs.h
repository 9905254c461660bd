/* pod/jobs.h - what a session's shell has running. */
#ifndef POD_JOBS_H
#define POD_JOBS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Now, in the unit in which the kernel tells when a process began. */
uint64_t jobs_now(void);
/* Kills what began since then, but not the shell, until nothing is left that could begin more.
 * is_shared: the machine's other processes are here too, so only those of the shell's session. */
void jobs_kill(pid_t shell, uint64_t since, bool is_shared);

#endif
