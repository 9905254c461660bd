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
#include <time.h>
#include <unistd.h>

#include "inside/init/guest_table.h"
#include "inside/init/join.h"
#include "inside/init/notify.h"

static void wake_up(int signo)
{
	(void)signo; /* only makes ppoll return */
}

static void note_usage(struct job *j, const struct rusage *ru)
{
	j->status->cpu_us =
		(uint64_t)ru->ru_utime.tv_sec * 1000000 + (uint64_t)ru->ru_utime.tv_usec +
		(uint64_t)ru->ru_stime.tv_sec * 1000000 + (uint64_t)ru->ru_stime.tv_usec;
	j->status->max_rss_kib = (uint64_t)ru->ru_maxrss;
}

/* Of all that was reaped. In a place the page is that of one guest among others. */
static void sample(struct job *j)
{
	struct rusage ru;

	if (!plan_stays(j) && getrusage(RUSAGE_CHILDREN, &ru) == 0)
		note_usage(j, &ru);
}

static void note_end(struct entry *e, int status, const struct rusage *ru)
{
	struct job *j = &e->job;

	e->pid = 0;
	j->status->wait_status = status;
	plan_mark(j, MARK_EXITED);
	note_usage(j, ru);
	sample(j);
	if (j->status->state != STATE_FAILED)
		j->status->state = STATE_EXITED;
}

/* True: the sandbox ends, because its guest has. */
static bool reap(void)
{
	for (;;) {
		struct rusage ru;
		int status;
		pid_t pid = wait4(-1, &status, WNOHANG | __WALL, &ru);

		if (pid <= 0)
			break;
		struct entry *e = guest_table_find(pid);
		if (e)
			note_end(e, status, &ru);
		guest_table_forget(pid);
		if (e)
			guest_table_settle(e);
	}
	return guest_table[0].pid == 0 && !plan_stays(&guest_table[0].job);
}

/* As ^C at a terminal: the guest leads a process group, which programs that it waits for are in. */
static void interrupt(const struct entry *e, int signo)
{
	if (e->pid > 0 && kill(-e->pid, signo) != 0)
		(void)kill(e->pid, signo);
}

/* A socket stays in the namespace that it was made in: with this one the host connects to what
 * listens here. */
static void give_socket(const struct job *j, int reply)
{
	int fd = j->flags & PLANF_LOOPBACK
			 ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
			 : -1;

	if (fd < 0)
		return;
	(void)reaper_send(reply, CONTROL_SOCKET, &fd, 1); /* the host made it non-blocking */
	close(fd);
}

/* Handles an order of the host. False: the host is gone. */
static bool obey(int control)
{
	struct entry *first = &guest_table[0];
	int fds[JOIN_FDS], order = join_receive(control, fds);

	if (order == CONTROL_JOIN && plan_stays(&first->job)) {
		join_start(&first->job, fds);
		return true;
	}
	if (order == CONTROL_SOCKET && fds[INIT_FD_CONTROL] >= 0)
		give_socket(&first->job, fds[INIT_FD_CONTROL]);
	for (int i = 0; i < JOIN_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (order == CONTROL_INTERRUPT)
		interrupt(first, SIGINT);
	if (order == CONTROL_SAMPLE) {
		sample(&first->job);
		return reaper_send(control, CONTROL_SAMPLED, NULL, 0) == 0;
	}
	return order >= 0;
}

/* An order for one guest of a place. If the host no longer has its socket, the guest ends. */
static void obey_for(struct entry *e)
{
	char text[2] = { 0 };
	ssize_t n = recv(e->control, text, sizeof(text), MSG_DONTWAIT);
	char order = text[0];
	bool is_gone = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);

	if (is_gone || order == CONTROL_END)
		guest_table_end(e);
	if (is_gone) {
		close(e->control);
		e->control = -1;
	} else if (order == CONTROL_INTERRUPT) {
		interrupt(e, SIGINT);
	} else if (order == CONTROL_SIGNAL && n == 2) {
		interrupt(e, text[1]);
	} else if (order == CONTROL_SAMPLE) {
		(void)reaper_send(e->control, CONTROL_SAMPLED, NULL, 0);
	}
	guest_table_settle(e);
}

static void take_listener(struct entry *e)
{
	e->listener = reaper_receive_fd(e->report);
	close(e->report);
	e->report = -1;
	notify_prepare(e->listener);
}

static void answer(struct entry *e, short revents)
{
	if (revents & POLLIN) {
		notify_answer(&e->job, e->listener);
		return;
	}
	close(e->listener); /* every filtered process is gone */
	e->listener = -1;
	guest_table_settle(e);
}

/* What to poll: the host, and three descriptors of each guest. */
enum { OF_GUEST = 3, POLLED = 1 + OF_GUEST * TABLE_SIZE };

static unsigned list(struct pollfd *p, struct entry **ret)
{
	unsigned count = 1;

	for (unsigned i = 0; i < guest_table_count; i++) {
		struct entry *e = &guest_table[i];
		const int fds[OF_GUEST] = { e->control, e->report, e->listener };

		for (int k = 0; e->is_used && k < OF_GUEST; k++)
			if (fds[k] >= 0) {
				p[count] = (struct pollfd){ .fd = fds[k], .events = POLLIN };
				ret[count++] = e;
			}
	}
	return count;
}

/* An earlier event may have closed the descriptor. */
static void handle(struct entry *e, const struct pollfd *p)
{
	if (!p->revents || !e->is_used)
		return;
	if (p->fd == e->control)
		obey_for(e);
	else if (p->fd == e->report)
		take_listener(e);
	else if (p->fd == e->listener)
		answer(e, p->revents);
}

enum { SOON_NS = 2000000 };

_Noreturn void reaper_run(struct job *j, pid_t guest, int control, int listener)
{
	static struct pollfd p[POLLED];
	static struct entry *whose[POLLED];
	struct sigaction sa = { .sa_handler = wake_up };
	const struct timespec soon = { .tv_nsec = SOON_NS };
	sigset_t none, chld;

	sigemptyset(&none);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	guest_table[0] = (struct entry){ .is_used = true,
					 .job = *j,
					 .pid = guest,
					 .control = -1,
					 .report = -1,
					 .listener = listener };
	notify_prepare(listener);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	sigaction(SIGCHLD, &sa, NULL);
	while (!reap()) {
		unsigned count = list(p, whose);

		p[0] = (struct pollfd){ .fd = control, .events = POLLIN };
		if (ppoll(p, count, guest_table_waits() ? &soon : NULL, &none) < 0)
			continue;
		if (guest_table_waits())
			guest_table_forget(0);
		for (unsigned i = 1; i < count; i++)
			handle(whose[i], &p[i]);
		/* Last: a guest that joins may get the numbers of descriptors that are closed. */
		if (p[0].revents && !obey(control))
			break;
	}
	_exit(0);
}
