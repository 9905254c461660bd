/* inside/pod/runtime/jobs.c - which command of a session a process belongs to, and ending all
 * processes of one command. Another process cannot be inspected, because /proc shows a process only
 * itself. So each process is signalled and checks itself. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/jobs.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inside/pod/runtime/signals.h"

/* Global, because a signal handler has no argument. */
static volatile struct {
	uint32_t ended;           /* the command that is over */
	uint32_t interrupted;     /* the one that the agent's last SIGINT is for */
} * shared;                       /* by all processes */
static volatile uint32_t noted;   /* in this process: the value of `interrupted` when SIGINT came */
static volatile uint32_t current; /* this process's command; 0: none */
static pid_t agent, shell;

static void on_end(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (info->si_code <= 0 && info->si_pid == agent && current == shared->ended &&
	    getpid() != shell)
		signals_die(SIGKILL);
}

int jobs_open(void)
{
	struct sigaction sa = { .sa_sigaction = on_end,
				.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
	void *page = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);

	if (page == MAP_FAILED)
		return -errno;
	shared = page;
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
	/* In a sandbox with its own pid namespace, init is our parent, and kill(-1) spares it. */
	pid_t to = is_shared || getppid() != 1 ? -of : -1;

	shared->ended = command;
	kill(to, JOBS_SIGNAL);
}

void jobs_interrupt(uint32_t command)
{
	shared->interrupted = command;
}

bool jobs_note_interrupt(const siginfo_t *info)
{
	if (!shared || info->si_code > 0 || info->si_pid != agent)
		return true;
	if (shared->interrupted < current)
		return false;
	noted = shared->interrupted;
	return true;
}

bool jobs_is_early(void)
{
	return noted > current;
}

/* Signals are held, because an interrupt for the current command may arrive between the check and
 * dropping the old one. */
void jobs_drop_interrupt(void)
{
	struct signal_arrival arrival;

	if (!noted)
		return;
	signals_hold();
	if (noted < current)
		signals_take(1ull << (SIGINT - 1), &arrival);
	noted = 0;
	signals_release();
}
