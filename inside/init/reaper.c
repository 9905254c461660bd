/* inside/init/reaper.c - see reaper.h. */
#include "inside/init/reaper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside/init/notify.h"

static void wake_up(int signo)
{
	(void)signo; /* only makes ppoll return */
}

static void sample(struct job *j)
{
	struct rusage ru;

	if (getrusage(RUSAGE_CHILDREN, &ru) != 0)
		return;
	j->status->cpu_us = (uint64_t)ru.ru_utime.tv_sec * 1000000 + (uint64_t)ru.ru_utime.tv_usec +
			    (uint64_t)ru.ru_stime.tv_sec * 1000000 + (uint64_t)ru.ru_stime.tv_usec;
	j->status->max_rss_kib = (uint64_t)ru.ru_maxrss;
}

/* True: the guest itself has ended. */
static bool reap(struct job *j, pid_t guest)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);

		if (pid <= 0)
			return false;
		if (pid != guest)
			continue;
		j->status->wait_status = status;
		plan_mark(j, MARK_EXITED);
		sample(j);
		if (j->status->state != STATE_FAILED)
			j->status->state = STATE_EXITED;
		return true;
	}
}

/* Handles an order of the host. False: the host is gone. */
static bool obey(struct job *j, pid_t guest, int control)
{
	char order;
	ssize_t n = recv(control, &order, 1, MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		return false;
	if (n == 1 && order == CONTROL_INTERRUPT)
		(void)kill(guest, SIGINT);
	if (n == 1 && order == CONTROL_SAMPLE) {
		sample(j);
		return reaper_send(control, CONTROL_SAMPLED, NULL, 0) == 0;
	}
	return true;
}

_Noreturn void reaper_run(struct job *j, pid_t guest, int control, int listener)
{
	struct sigaction sa = { .sa_handler = wake_up };
	sigset_t none, chld;

	sigemptyset(&none);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	notify_prepare(listener);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	sigaction(SIGCHLD, &sa, NULL);
	while (!reap(j, guest)) {
		struct pollfd p[2] = { { .fd = control, .events = POLLIN },
				       { .fd = listener, .events = POLLIN } };

		if (ppoll(p, 2, NULL, &none) < 0)
			continue;
		if (p[0].revents && !obey(j, guest, control))
			break;
		if (p[1].revents & POLLIN)
			notify_answer(j, listener);
		else if (p[1].revents)
			listener = -1; /* every filtered process is gone */
	}
	_exit(0);
}
