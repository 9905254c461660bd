/* inside/guests/sh/tool_process.c - see tool_process.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside/guests/sh/tool_process.h"
#include "inside/guests/sh/tools.h"

/* A small call is sent together with the socket: one message, one wake-up. */
#define ALONG_BYTES 16384

static int connect_agent(int agent, const struct bytes *call)
{
	int pair[2];
	if (agent < 3 || fcntl(agent, F_GETFD) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	char byte = 'T', control[CMSG_SPACE(sizeof(int))] = { 0 };
	bool along = call->len > 1 && call->len <= ALONG_BYTES;
	struct iovec iov = { along ? call->data : &byte, along ? call->len : 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &pair[1], sizeof(int));
	ssize_t n = sendmsg(agent, &m, 0);
	close(pair[1]);
	if (n != (ssize_t)iov.iov_len) {
		close(pair[0]);
		return -1;
	}
	if (!along)
		bytes_write(pair[0], call->data, call->len);
	return pair[0];
}

/* Whether stdin is the session's own input. That may never be closed, so only what is already there
 * is read. */
static bool is_session_input(void)
{
	const char *text = getenv("CORDON_STDIN");
	struct stat st;
	char mine[64];
	if (!text || fstat(0, &st) < 0)
		return false;
	snprintf(mine, sizeof(mine), "%lu:%lu", (unsigned long)st.st_dev, (unsigned long)st.st_ino);
	return !strcmp(text, mine);
}

static int send_stdin(int fd)
{
	bool session = is_session_input();
	static char buf[65536];
	for (;;) {
		if (session && poll(&(struct pollfd){ .fd = 0, .events = POLLIN }, 1, 20) <= 0)
			break;
		ssize_t n = read(0, buf, sizeof(buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (bytes_write(fd, buf, (size_t)n) < 0)
			return -1;
	}
	return shutdown(fd, SHUT_WR);
}

/* What a tool may want to know of its caller: "LENGTH\n", then the directory and the environment,
 * each ended by NUL. */
static int send_context(int fd, const struct tool_process *call)
{
	struct bytes context = { 0 }, head = { 0 };
	bytes_add(&context, call->cwd, strlen(call->cwd) + 1);
	for (char *const *e = call->envp; *e; e++)
		bytes_add(&context, *e, strlen(*e) + 1);
	bytes_format(&head, "%zu\n", context.len);
	bytes_add(&head, context.data, context.len);
	int r = bytes_write(fd, head.data, head.len);
	bytes_done(&context);
	bytes_done(&head);
	return r;
}

/* "R<status> <stdout bytes> <stderr bytes>\n", then those. */
static int show_reply(struct bytes *b, int fd)
{
	while (bytes_read(b, fd) > 0)
		;
	char *nl = b->len ? memchr(b->data, '\n', b->len) : NULL;
	if (!nl || b->data[0] != 'R')
		return -1;
	char *at = b->data + 1;
	int status = (int)strtol(at, &at, 10);
	size_t out = *at == ' ' ? strtoul(at, &at, 10) : 0;
	size_t err = *at == ' ' ? strtoul(at, &at, 10) : 0;
	size_t head = (size_t)(nl - b->data) + 1, left = b->len - head;
	if (at != nl || out > left || err != left - out)
		return -1;
	if (bytes_write(1, b->data + head, out) < 0)
		return 1;
	bytes_write(2, b->data + head + out, err);
	return status;
}

int tool_process_run(int agent, const struct tool_process *call)
{
	struct bytes words = { 0 }, head = { 0 }, in = { 0 };
	bytes_add(&words, call->name, strlen(call->name) + 1);
	for (int i = 0; i < call->argc; i++)
		bytes_add(&words, call->argv[i], strlen(call->argv[i]) + 1);
	bytes_format(&head, "%zu\n", words.len);
	bytes_add(&head, words.data, words.len);
	int fd = connect_agent(agent, &head), status = -1;
	if (fd >= 0) {
		/* One line first: "I" asks for stdin, "C" for the context and stdin; otherwise the
		 * reply begins. */
		while (in.len < 2 && bytes_read(&in, fd) > 0)
			;
		bool is_whole = in.len >= 2 && !memcmp(in.data, "C\n", 2);
		if (is_whole || (in.len >= 2 && !memcmp(in.data, "I\n", 2))) {
			bytes_drop(&in, 2);
			if (!is_whole || send_context(fd, call) == 0)
				send_stdin(fd);
		}
		status = show_reply(&in, fd);
		close(fd);
	}
	bytes_done(&words);
	bytes_done(&head);
	bytes_done(&in);
	if (status < 0) {
		fprintf(stderr, "%s: the session's tools cannot be reached from here\n",
			call->name);
		status = 1;
	}
	return status;
}

int tool_process_main(const char *name, int argc, char **argv)
{
	const char *text = getenv("CORDON_TOOLS_FD");
	char cwd[PATH_MAX];
	struct tool_process call = { name, argc, argv, getcwd(cwd, sizeof(cwd)), environ };

	if (!call.cwd)
		call.cwd = ""; /* it was removed */
	return tool_process_run(text ? (int)strtol(text, NULL, 10) : -1, &call);
}
