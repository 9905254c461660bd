/* inside/pod/runtime/agent.c - see agent.h. Sends commands to a session's shell, and replaces a
 * shell that has died. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/agent.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside/pod/runtime/image.h"
#include "inside/pod/runtime/jobs.h"
#include "inside/pod/runtime/run.h"

enum { MAX_DEATHS = 5 };

static int private_fd(const struct w2c_sys *p, int fd)
{
	int high = fcntl(fd, F_DUPFD, p->fd_limit);

	close(fd);
	return high;
}

/* Changes to the last shell's directory, by the guest's name for it. */
static void return_to(const struct w2c_sys *p, const char *cwd)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof path, "%s%s", p->rooted ? p->root : "", cwd);
	if (cwd[0] && chdir(path))
		fputs("cordon-pod: the shell's directory is gone\n", stderr);
}

/* The shell's process: guest code runs here, without the agent's descriptors. */
__attribute__((noreturn)) static void become_shell(struct agent *a, int channel)
{
	static char *const argv[] = { "bash", NULL };
	struct w2c_sys *p = a->process;
	sigset_t none;

	p->agent = getppid();
	setsid();
	signal(SIGPIPE, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none,
		    NULL); /* the agent unblocks its own signals only while it waits */
	syscall(SYS_close_range, 3, p->fd_limit - 1,
		0); /* closes the agent's descriptors; none is the guest's */
	close(a->denials);
	if (p->fds[PRIVATE_AGENT] >= 0)
		close(p->fds[PRIVATE_AGENT]); /* the socket for requests */
	p->fds[PRIVATE_AGENT] = channel;
	p->session = getpid();
	return_to(p, a->cwd);
	if (image_choose(p, "bash") || image_arguments(p, argv, a->envp))
		_exit(125);
	run_programs(p);
}

int agent_start(struct agent *a)
{
	int pair[2], theirs;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	a->channel = private_fd(a->process, pair[0]);
	theirs = private_fd(a->process, pair[1]);
	a->shell = (pid_t)syscall(SYS_fork);
	if (a->shell < 0)
		return -errno;
	if (!a->shell) {
		close(a->channel);
		become_shell(a, theirs);
	}
	close(theirs);
	a->shell_fd = (int)syscall(SYS_pidfd_open, a->shell, 0);
	a->shell_fd = private_fd(a->process, a->shell_fd);
	return a->shell_fd < 0 ? -errno : 0;
}

static void tell_done(struct agent *a, int status)
{
	bool restarted = a->restarted;

	a->busy = a->restarted = false;
	a->front.done(a->front.arg, status, restarted, a->cwd);
}

static int on_shell_death(struct agent *a);

static int on_shell_message(struct agent *a)
{
	static struct agent_packet packet;
	int r = agent_receive(a->channel, &packet);

	/* All copies of its end are closed: it is dead, and the socket would stay readable for
	 * ever. */
	if (r < 0 || !packet.head.type)
		return on_shell_death(a);
	for (int i = 0; i < 3; i++)
		if (packet.fds[i] >= 0)
			close(packet.fds[i]); /* the shell must not send any */
	a->deaths = 0;
	snprintf(a->cwd, sizeof a->cwd, "%.*s", PATH_MAX - 1, packet.payload);
	/* A new shell's READY is not passed on if a command already waits for it. */
	if (packet.head.type == AGENT_DONE && a->busy)
		tell_done(a, packet.head.status & 255);
	else if (packet.head.type == AGENT_READY && !a->busy)
		a->front.ready(a->front.arg, a->cwd);
	return 0;
}

/* The shell ended: exec of a program that ended, a kill, a trap, or the memory limit. */
static int on_shell_death(struct agent *a)
{
	siginfo_t info = { 0 };
	int status;

	if (waitid(P_PID, (id_t)a->shell, &info, WEXITED) || !info.si_pid)
		return 0;
	status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	close(a->channel);
	close(a->shell_fd);
	a->restarted = true;
	a->channel = a->shell_fd = -1;
	if (++a->deaths > MAX_DEATHS)
		return -ECHILD;
	if (a->busy)
		tell_done(a, status);
	return agent_start(a);
}

static int on_denial(struct agent *a)
{
	char text[512];
	ssize_t n = recv(a->denials, text, sizeof text - 1, MSG_DONTWAIT);

	if (n <= 0)
		return 0;
	text[n] = 0;
	a->front.denied(a->front.arg, text);
	return 0;
}

int agent_open(struct agent *a)
{
	struct w2c_sys *p = a->process;
	int pair[2];

	a->channel = a->shell_fd = a->denials = -1;
	if (jobs_open())
		return -errno;
	if (p->fds[PRIVATE_DENIALS] >= 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return -errno;
	a->denials = private_fd(p, pair[0]);
	p->fds[PRIVATE_DENIALS] = private_fd(p, pair[1]);
	return 0;
}

int agent_run(struct agent *a, const char *text, size_t len, const int fds[3])
{
	struct agent_message head = { .type = AGENT_RUN };

	if (a->busy)
		return -EBUSY;
	if (len > AGENT_COMMAND_MAX)
		return -EMSGSIZE;
	a->busy = true;
	head.id = ++a->command;
	/* If the shell has just died, its death is handled next. */
	agent_send(a->channel, &head, text, len, fds);
	return 0;
}

void agent_signal(const struct agent *a, int signo)
{
	if (a->shell > 0)
		kill(-a->shell, signo);
}

void agent_end_jobs(const struct agent *a)
{
	if (a->shell > 0)
		jobs_end(a->shell, a->command, a->process->rooted);
}

void agent_interrupt(const struct agent *a, enum agent_force force)
{
	if (a->shell <= 0)
		return;
	jobs_interrupt(a->command);
	switch (force) {
	case AGENT_ASK:
		agent_signal(a, SIGINT);
		break;
	case AGENT_END_JOBS: /* the shell must know why before it sees their end */
		kill(a->shell, SIGINT);
		agent_end_jobs(a);
		break;
	case AGENT_END_ALL:
		agent_signal(a, SIGKILL);
		break;
	}
}

void agent_poll(const struct agent *a, struct pollfd ret[AGENT_FDS])
{
	ret[0] = (struct pollfd){ .fd = a->denials, .events = POLLIN };
	ret[1] = (struct pollfd){ .fd = a->channel, .events = POLLIN };
	ret[2] = (struct pollfd){ .fd = a->shell_fd, .events = POLLIN };
}

/* Denials first: they must come before the answer of the command that caused them. */
int agent_attend(struct agent *a, const struct pollfd fds[AGENT_FDS])
{
	if (fds[0].revents & POLLIN)
		return on_denial(a);
	if (fds[1].revents & (POLLIN | POLLHUP))
		return on_shell_message(a);
	return fds[2].revents & POLLIN ? on_shell_death(a) : 0;
}
