/* pod/jobs.h - which command of a session a process belongs to, and the end of all of one's. */
#ifndef POD_JOBS_H
#define POD_JOBS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The runtime's own, on which the guest has no say: its libc keeps this number to itself. */
#define JOBS_SIGNAL 34
#define JOBS_SIGNAL_BIT (1ull << (JOBS_SIGNAL - 1))

/* In the agent, before the first shell: every process of the pod is a fork of it. */
int jobs_open(void);
/* In the shell: from here on it, and what it forks, is at work on this command. */
void jobs_begin(uint32_t command);
/* In the agent: kills what is at work on the command, but not the shell. is_shared: the machine's
 * other processes are here too, so only those of the shell's own group. */
void jobs_end(pid_t shell, uint32_t command, bool is_shared);

#endif
