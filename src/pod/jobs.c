/* pod/jobs.c - which command of a session a process belongs to, and the end of all of one's. A
 * process cannot be found by looking, /proc shows nobody but itself; it is told to look. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "jobs.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "signals.h"

/* A handler has no argument to find these by. */
static volatile uint32_t *ended;  /* shared by all: the command that is over */
static volatile uint32_t current; /* of this process; 0: none */
static pid_t agent, shell;

static void on_end(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (info->si_code <= 0 && info->si_pid == agent && current == *ended && getpid() != shell)
		signals_die(SIGKILL);
}

int jobs_open(void)
{
	struct sigaction sa = { .sa_sigaction = on_end,
				.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
	void *page = mmap(NULL, sizeof *ended, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);

	if (page == MAP_FAILED)
		return -errno;
	ended = page;
	agent = getpid();
	sigfillset(&sa.sa_mask);
	return sigaction(JOBS_SIGNAL, &sa, NULL) ? -errno : 0;
}

void jobs_begin(uint32_t command)
{
	shell = getpid();
	current = command;
}

void jobs_end(pid_t of, uint32_t command, bool is_shared)
{
	/* Init is our parent inside a wall with processes of its own, and the kernel spares it. */
	pid_t to = is_shared || getppid() != 1 ? -of : -1;

	*ended = command;
	kill(to, JOBS_SIGNAL);
}
