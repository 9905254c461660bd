/* session/cputime.c - see cputime.h. The guest is the first child of the sandbox's pid 1; its
 * process clock counts all its threads, and pid 1 counts what it has reaped. */
#include "session/cputime.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <fcntl.h>

/* The kernel's number for "CPU clock of that process". */
static clockid_t clock_of(pid_t pid)
{
	return (clockid_t)((~(unsigned)pid << 3) | 2);
}

uint64_t cputime_of(struct box *b)
{
	struct timespec t;
	pid_t pid = box_guest_pid(b);
	uint64_t us = box_status(b)->cpu_us;

	if (pid > 0 && clock_gettime(clock_of(pid), &t) == 0)
		us += (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
	return us;
}
