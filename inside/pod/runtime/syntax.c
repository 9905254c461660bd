/* inside/pod/runtime/syntax.c - see syntax.h. Runs the pod's bash with -n. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/syntax.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside/guests/sh/shell.h"
#include "inside/pod/runtime/image.h"
#include "inside/pod/runtime/run.h"

enum { PARSE_SECONDS = 5, SAID_MAX = 65536 };

static struct w2c_sys *process;

void syntax_use(struct w2c_sys *p)
{
	process = p;
}

__attribute__((noreturn)) static void become_parser(int in, int out)
{
	static char *const argv[] = {
		"bash", "--norc", "--noprofile", "-O", "extglob", "-n", NULL
	};
	static char *const envp[] = { "PATH=/usr/bin", "LANG=C.UTF-8", NULL };

	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
		_exit(125);
	syscall(SYS_close_range, 3, process->fd_limit - 1, 0);
	alarm(PARSE_SECONDS);
	process->agent = getppid();
	if (image_choose(process, "bash") || image_arguments(process, argv, envp))
		_exit(125);
	run_programs(process);
}

/* Writes what fits; the end of the text is the end of its input. */
static void give(int *to, const char **code, size_t *len)
{
	ssize_t n = write(*to, *code, *len);

	if (n > 0) {
		*code += n;
		*len -= (size_t)n;
	}
	if (!*len || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		close(*to);
		*to = -1;
	}
}

/* Both directions at once, so that a parser that prints much does not block. */
static void converse(int to, int from, const char *code, size_t len, struct bytes *ret)
{
	fcntl(to, F_SETFL, O_NONBLOCK);
	for (;;) {
		struct pollfd p[2] = { { .fd = to, .events = POLLOUT },
				       { .fd = from, .events = POLLIN } };

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[0].revents)
			give(&to, &code, &len);
		if (p[1].revents && bytes_read(ret, from) <= 0)
			break;
		if (ret->len > SAID_MAX)
			ret->len = SAID_MAX;
	}
	if (to >= 0)
		close(to);
}

/* shell.h: what inside/guests/sh/shell_check.c asks. */
bool shell_is_broken(const char *code, size_t len, struct bytes *ret)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, status = 0;
	pid_t pid = -1;

	if (!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC))
		pid = (pid_t)syscall(SYS_fork);
	if (!pid)
		become_parser(in[0], out[1]);
	close(in[0]);
	close(out[1]);
	if (pid > 0) {
		converse(in[1], out[0], code, len, ret);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	} else {
		close(in[1]);
	}
	close(out[0]);
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) != 0;
}
