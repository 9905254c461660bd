/* inside/pod/runtime/jobs.h - which command of a session a process belongs to, and ending all
 * processes of one command. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A signal of the runtime. The guest cannot use it: its libc does not offer this number. */
#define JOBS_SIGNAL 34
#define JOBS_SIGNAL_BIT (1ull << (JOBS_SIGNAL - 1))

/* In the agent, before the first shell. Every process of the pod is a fork of the agent. */
int jobs_open(void);
/* In the shell: from here on it and its children belong to this command. */
void jobs_begin(uint32_t command);
/* In the agent: kills the processes of the command, but not the shell. is_shared: other processes
 * of the machine are visible too, so only the shell's own process group is signalled. */
void jobs_end(pid_t shell, uint32_t command, bool is_shared);

/* In the agent, before it sends SIGINT to the shell: which command it is for. */
void jobs_interrupt(uint32_t command);
/* In the handler of SIGINT: notes which command the agent's interrupt is for. False: for a command
 * that had ended before this process began its own. */
bool jobs_note_interrupt(const siginfo_t *info);
/* In the shell: whether the noted interrupt is for a command that it has not read yet. */
bool jobs_is_early(void);
/* In the shell, after it has begun a command: drops an interrupt for an earlier one, which had
 * already ended. */
void jobs_drop_interrupt(void);
