/* inside/pod/runtime/jobs.h - which command of a session a process belongs to, and ending all
 * processes of one command. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A signal of the runtime, which the guest cannot use: its libc does not offer this number. */
#define JOBS_SIGNAL 34
#define JOBS_SIGNAL_BIT (1ull << (JOBS_SIGNAL - 1))

/* In the agent, before the first shell: every process of the pod is a fork of it. */
int jobs_open(void);
/* In the shell: from here on it, and what it forks, belongs to this command. */
void jobs_begin(uint32_t command);
/* In the agent: kills the processes of the command, but not the shell. is_shared: the machine's
 * other processes are visible too, so only those of the shell's own group. */
void jobs_end(pid_t shell, uint32_t command, bool is_shared);

/* In the agent, before it sends the shell SIGINT: which command that is for. */
void jobs_interrupt(uint32_t command);
/* In the handler of SIGINT: notes which command an interrupt of the agent is for. False: for a
 * command that ended before this process began its own. */
bool jobs_note_interrupt(const siginfo_t *info);
/* In the shell: whether the interrupt that was noted is for a command that it has yet to take. */
bool jobs_is_early(void);
/* In the shell, which has begun a command: takes out an interrupt of an earlier one, which was over
 * before it came. */
void jobs_drop_interrupt(void);
