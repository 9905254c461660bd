/* inside/guests/sh/host_wire.c - see host_wire.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/guests/sh/host_wire.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

void host_wire_flush(struct bytes *out)
{
	while (out->len) {
		ssize_t n = send(HOST_WIRE, out->data, out->len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
			return;
		if (n < 0)
			_exit(0); /* the host is gone */
		bytes_drop(out, (size_t)n);
	}
}

void host_wire_say(struct bytes *out, const struct bytes *line)
{
	bytes_add(out, line->data, line->len);
	host_wire_flush(out);
}

void host_take_token(char ret[HOST_TOKEN_DIGITS + 1])
{
	char *t = getenv("CORDON_TOKEN");

	ret[0] = 0;
	if (!t)
		return;
	snprintf(ret, HOST_TOKEN_DIGITS + 1, "%s", t);
	memset(t, 'x', strlen(t)); /* also in what /proc shows of the environment */
	unsetenv("CORDON_TOKEN");
}

/* Only ends a wait. The host's interrupts come over the wire, where they name their execution. */
static void on_signal(int signo)
{
	(void)signo;
}

void host_catch_signals(bool with_children)
{
	struct sigaction act = { .sa_handler = on_signal };
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	if (with_children)
		sigaddset(&blocked, SIGCHLD);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	sigaction(SIGINT, &act, NULL);
	if (with_children)
		sigaction(SIGCHLD, &act, NULL);
	signal(SIGPIPE, SIG_IGN);
}

long host_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000 + 1;
}
