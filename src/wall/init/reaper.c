/* wall/init/reaper.c - see reaper.h. */
#include "wall/init/reaper.h"

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

#include "wall/init/notify.h"

int reaper_send(int control, char byte, const int *fds, unsigned count)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} u = { .room = { 0 } };
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (count > 0) {
		msg.msg_control = u.room;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		u.head.cmsg_level = SOL_SOCKET;
		u.head.cmsg_type = SCM_RIGHTS;
		u.head.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&u.head), fds, count * sizeof(int));
	}
	return sendmsg(control, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int reaper_receive_fd(int sock)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} u = { .room = { 0 } };
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = u.room,
			      .msg_controllen = sizeof(u.room) };
	int fd = -1;

	ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	if (n > 0 && msg.msg_controllen >= CMSG_LEN(sizeof(int)) &&
	    u.head.cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(&u.head), sizeof(fd));
	return fd;
}

static void wake_up(int signo)
{
	(void)signo; /* only so that ppoll returns */
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

/* True when the guest itself was among the dead. */
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
		sample(j);
		j->status->state = STATE_EXITED;
		return true;
	}
}

/* False when the host is gone. */
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
