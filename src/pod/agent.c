/* pod/agent.c - keeps a session's shell: hands it commands, replaces it when it is gone. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image.h"
#include "run.h"

struct agent {
	struct w2c_sys *process;
	char *const *envp;
	int host;     /* requests and answers */
	int channel;  /* to the shell */
	int denials;  /* from every process of the pod */
	int shell_fd; /* a pidfd */
	pid_t shell;
	bool busy, restarted;
	uint32_t id; /* of the command that runs */
	char cwd[PATH_MAX];
};

static int private_fd(const struct w2c_sys *p, int fd)
{
	int high = fcntl(fd, F_DUPFD, p->fd_limit);

	close(fd);
	return high;
}

/* Where the last shell was, by the guest's own name for it. */
static void return_to(const struct w2c_sys *p, const char *cwd)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof path, "%s%s", p->rooted ? p->root : "", cwd);
	if (cwd[0] && chdir(path))
		fputs("cordon-pod: the shell's directory is gone\n", stderr);
}

/* The shell's process: guest code runs here, and the agent's own descriptors do not exist. */
__attribute__((noreturn)) static void become_shell(struct agent *a, int channel)
{
	static char *const argv[] = { "bash", NULL };
	struct w2c_sys *p = a->process;

	p->agent = getppid();
	setsid();
	close(a->host);
	close(a->denials);
	p->fds[PRIVATE_AGENT] = channel;
	p->session = getpid();
	return_to(p, a->cwd);
	if (image_choose(p, "bash") || image_arguments(p, argv, a->envp))
		_exit(125);
	run_programs(p);
}

static int start_shell(struct agent *a)
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

static int answer(struct agent *a, uint32_t type, int status, const char *text)
{
	struct agent_message head = { type, a->id, status, a->restarted ? AGENT_RESTARTED : 0 };

	if (type == AGENT_DONE) {
		a->busy = false;
		a->restarted = false;
	}
	return agent_send(a->host, &head, text, strlen(text), NULL);
}

static int on_shell_death(struct agent *a);

static int on_shell_message(struct agent *a)
{
	static struct agent_packet packet;
	int r = agent_receive(a->channel, &packet);

	/* All its ends are closed: it is dead, and the socket would stay readable for ever. */
	if (r < 0 || !packet.head.type)
		return on_shell_death(a);
	snprintf(a->cwd, sizeof a->cwd, "%.*s", PATH_MAX - 1, packet.payload);
	if (packet.head.type == AGENT_DONE)
		return answer(a, AGENT_DONE, packet.head.status, a->cwd);
	/* A new shell's greeting is of no interest where a command waits for it already. */
	return a->busy ? 0 : answer(a, AGENT_READY, 0, a->cwd);
}

/* exec of something that ended, a kill, a trap, or the memory limit. */
static int on_shell_death(struct agent *a)
{
	siginfo_t info = { 0 };
	int r = 0, status;

	if (waitid(P_PID, (id_t)a->shell, &info, WEXITED) || !info.si_pid)
		return 0;
	status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	close(a->channel);
	close(a->shell_fd);
	a->restarted = true;
	if (a->busy)
		r = answer(a, AGENT_DONE, status, a->cwd);
	return r ? r : start_shell(a);
}

static int on_request(struct agent *a)
{
	static struct agent_packet packet;
	int r = agent_receive(a->host, &packet);

	if (r == -EMSGSIZE)
		return answer(a, AGENT_REFUSED, 0, "command too large");
	if (r < 0 || !packet.head.type)
		return -EPIPE;
	r = 0;
	switch (packet.head.type) {
	case AGENT_RUN:
		if (a->busy || packet.fds[0] < 0 || packet.fds[1] < 0 || packet.fds[2] < 0) {
			r = answer(a, AGENT_REFUSED, 0,
				   a->busy ? "a command is running"
					   : "three descriptors are needed");
			break;
		}
		a->busy = true;
		a->id = packet.head.id;
		/* A shell that has just died: its death is answered next. */
		agent_send(a->channel, &packet.head, packet.payload, packet.bytes, packet.fds);
		break;
	case AGENT_CANCEL:
		if (a->busy)
			kill(-a->shell, SIGKILL);
		break;
	case AGENT_PING:
		a->id = a->busy ? a->id : packet.head.id;
		r = answer(a, AGENT_PING, 0, "");
		break;
	default:
		r = answer(a, AGENT_REFUSED, 0, "unknown request");
	}
	for (int i = 0; i < 3; i++)
		if (packet.fds[i] >= 0)
			close(packet.fds[i]);
	return r;
}

static int on_denial(struct agent *a)
{
	char text[512];
	ssize_t n = recv(a->denials, text, sizeof text - 1, MSG_DONTWAIT);

	if (n <= 0)
		return 0;
	text[n] = 0;
	return answer(a, AGENT_DENIED, 0, text);
}

static int open_denials(struct agent *a)
{
	struct w2c_sys *p = a->process;
	int pair[2];

	if (p->fds[PRIVATE_DENIALS] >= 0) {
		a->denials = -1;
		return 0;
	}
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return -errno;
	a->denials = private_fd(p, pair[0]);
	p->fds[PRIVATE_DENIALS] = private_fd(p, pair[1]);
	return 0;
}

/* Denials first: they come before the answer of the command that caused them. */
static int serve_once(struct agent *a)
{
	struct pollfd fds[4] = { { .fd = a->denials, .events = POLLIN },
				 { .fd = a->channel, .events = POLLIN },
				 { .fd = a->shell_fd, .events = POLLIN },
				 { .fd = a->host, .events = POLLIN } };
	int r = 0;

	if (poll(fds, 4, -1) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents & POLLIN)
		return on_denial(a);
	if (fds[1].revents & POLLIN)
		r = on_shell_message(a);
	else if (fds[2].revents & POLLIN)
		r = on_shell_death(a);
	else if (fds[3].revents)
		r = on_request(a);
	return r;
}

int agent_serve(struct w2c_sys *p, char *const *envp)
{
	static struct agent a;
	int r;

	a = (struct agent){ .process = p, .envp = envp, .host = p->fds[PRIVATE_AGENT] };
	signal(SIGPIPE, SIG_IGN);
	r = open_denials(&a);
	if (!r)
		r = start_shell(&a);
	while (!r)
		r = serve_once(&a);
	if (a.shell > 0)
		kill(-a.shell, SIGKILL);
	return r == -EPIPE ? 0 : 125;
}
