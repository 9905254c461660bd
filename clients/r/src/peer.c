/* The program at the other end of two pipes, and the routines that R code calls. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside/guests/r/cordon_r.h"

#include <R_ext/Rdynload.h>

extern char **environ;

struct peer {
	int in, out; /* read from, write to; -1: closed */
	pid_t pid, owner;
	struct bytes buf;
	size_t scanned;
};

static int write_all(int fd, const char *data, size_t len);

static void stop(struct peer *p)
{
	/* What still runs is not waited for. */
	static const char last[] = "{\"jsonrpc\":\"2.0\",\"method\":\"kill\"}\n";

	/* A forked R must not end what its parent uses. */
	int is_mine = p->owner == getpid();

	if (p->out >= 0 && is_mine)
		write_all(p->out, last, sizeof(last) - 1);
	if (p->out >= 0)
		close(p->out);
	if (p->pid > 0 && is_mine) {
		for (int i = 0; i < 200 && waitpid(p->pid, NULL, WNOHANG) == 0; i++) {
			if (i == 150)
				kill(p->pid, SIGKILL);
			usleep(10000);
		}
	}
	if (p->in >= 0)
		close(p->in);
	p->in = p->out = -1;
	p->pid = 0;
	bytes_done(&p->buf);
}

static void finalize(SEXP s)
{
	struct peer *p = R_ExternalPtrAddr(s);

	if (!p)
		return;
	stop(p);
	free(p);
	R_ClearExternalPtr(s);
}

static struct peer *get(SEXP s)
{
	struct peer *p = TYPEOF(s) == EXTPTRSXP ? R_ExternalPtrAddr(s) : NULL;

	if (!p)
		Rf_error("the connection is closed");
	return p;
}

/* argv: the program and its arguments. */
SEXP peer_start(SEXP argv)
{
	int n = Rf_length(argv), to[2], from[2];
	char **args = (char **)R_alloc((size_t)n + 1, sizeof(char *));
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid;

	for (int i = 0; i < n; i++)
		args[i] = (char *)Rf_translateChar(STRING_ELT(argv, i));
	args[n] = NULL;
	struct peer *p = calloc(1, sizeof(*p));
	if (!p || pipe2(to, O_CLOEXEC) != 0)
		Rf_error("cannot make a pipe");
	if (pipe2(from, O_CLOEXEC) != 0) {
		close(to[0]);
		close(to[1]);
		free(p);
		Rf_error("cannot make a pipe");
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, to[0], 0);
	posix_spawn_file_actions_adddup2(&actions, from[1], 1);
	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attr, &none);
	/* An interrupt at the terminal is for R, which then cancels the execution. */
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	int r = posix_spawnp(&pid, args[0], &actions, &attr, args, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	close(to[0]);
	close(from[1]);
	if (r != 0) {
		close(to[1]);
		close(from[0]);
		free(p);
		Rf_error("cannot start '%s': %s", args[0], strerror(r));
	}
	*p = (struct peer){ .in = from[0], .out = to[1], .pid = pid, .owner = getpid() };
	SEXP s = PROTECT(R_MakeExternalPtr(p, R_NilValue, R_NilValue));
	R_RegisterCFinalizerEx(s, finalize, TRUE);
	UNPROTECT(1);
	return s;
}

/* SIGPIPE would end R: it is ignored while we write. */
static int write_all(int fd, const char *data, size_t len)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old;
	int good = 1;

	sigaction(SIGPIPE, &ignore, &old);
	while (len > 0 && good) {
		ssize_t n = write(fd, data, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			good = 0;
		else {
			data += n;
			len -= (size_t)n;
		}
	}
	sigaction(SIGPIPE, &old, NULL);
	return good;
}

/* A line of these pieces. FALSE: the server is gone. */
SEXP peer_send(SEXP s, SEXP pieces)
{
	struct peer *p = get(s);
	struct bytes b = { 0 };

	if (p->owner != getpid())
		Rf_error("the connection belongs to another process: this one was forked from it");
	for (int i = 0; i < Rf_length(pieces); i++) {
		SEXP c = STRING_ELT(pieces, i);
		const char *text = Rf_translateCharUTF8(c);
		bytes_add(&b, text, strlen(text));
	}
	if (b.len > 8 << 20) {
		double len = (double)b.len;
		bytes_done(&b);
		Rf_error("the request has %.0f bytes; at most %d can be sent at once", len, 8 << 20);
	}
	bytes_char(&b, '\n');
	int good = p->out >= 0 && write_all(p->out, b.data, b.len);
	bytes_done(&b);
	return Rf_ScalarLogical(good);
}

/* The next message, decoded; NULL: none came for ms; FALSE: there will be none. */
SEXP peer_receive(SEXP s, SEXP ms)
{
	struct peer *p = get(s);

	if (p->owner != getpid())
		Rf_error("the connection belongs to another process: this one was forked from it");
	for (;;) {
		char *end = p->buf.len > p->scanned
				    ? memchr(p->buf.data + p->scanned, '\n', p->buf.len - p->scanned)
				    : NULL;
		if (end) {
			size_t len = (size_t)(end - p->buf.data);
			if (!json_check(p->buf.data, len))
				Rf_error("the server sent something that is no JSON");
			SEXP m = PROTECT(decode_value((struct json){ p->buf.data, len }));
			bytes_drop(&p->buf, len + 1);
			p->scanned = 0;
			UNPROTECT(1);
			return m;
		}
		p->scanned = p->buf.len;
		struct pollfd fd = { .fd = p->in, .events = POLLIN };
		int n = poll(&fd, 1, Rf_asInteger(ms));
		if (n == 0 || (n < 0 && errno == EINTR))
			return R_NilValue;
		if (p->in < 0 || bytes_read(&p->buf, p->in) <= 0)
			return Rf_ScalarLogical(FALSE);
	}
}

SEXP peer_stop(SEXP s)
{
	finalize(s);
	return R_NilValue;
}

SEXP peer_pid(SEXP s)
{
	struct peer *p = TYPEOF(s) == EXTPTRSXP ? R_ExternalPtrAddr(s) : NULL;

	return Rf_ScalarInteger(p && p->owner == getpid() ? p->pid : 0);
}

/* JSON text of a value; text: an R function that prints what has no data form. */
SEXP value_encode(SEXP v, SEXP text)
{
	struct bytes b = { 0 };
	const char *why = encode_value(&b, v, text, (size_t)64 << 20);

	if (why) {
		char said[128];
		strncpy(said, why, sizeof(said) - 1);
		said[sizeof(said) - 1] = '\0';
		bytes_done(&b);
		Rf_error("%s", said);
	}
	SEXP out = PROTECT(Rf_ScalarString(Rf_mkCharLenCE(b.data, (int)b.len, CE_UTF8)));
	bytes_done(&b);
	UNPROTECT(1);
	return out;
}

SEXP value_decode(SEXP text)
{
	const char *s = Rf_translateCharUTF8(STRING_ELT(text, 0));
	size_t len = strlen(s);

	if (!json_check(s, len))
		Rf_error("not JSON");
	return decode_value((struct json){ s, len });
}

SEXP text_quote(SEXP text)
{
	struct bytes b = { 0 };
	const char *s = Rf_translateCharUTF8(STRING_ELT(text, 0));

	json_quote(&b, s, strlen(s));
	SEXP out = PROTECT(Rf_ScalarString(Rf_mkCharLenCE(b.data, (int)b.len, CE_UTF8)));
	bytes_done(&b);
	UNPROTECT(1);
	return out;
}

SEXP bytes_encode(SEXP raw)
{
	struct bytes b = { 0 };

	base64_encode(&b, RAW(raw), (size_t)Rf_xlength(raw));
	SEXP out = PROTECT(Rf_ScalarString(Rf_mkCharLenCE(b.len ? b.data : "", (int)b.len, CE_UTF8)));
	bytes_done(&b);
	UNPROTECT(1);
	return out;
}

SEXP bytes_decode(SEXP text)
{
	struct bytes b = { 0 };
	const char *s = CHAR(STRING_ELT(text, 0));

	bytes_char(&b, '"');
	bytes_add(&b, s, strlen(s));
	bytes_char(&b, '"');
	struct json v = { b.data, b.len };
	SEXP out = PROTECT(Rf_allocVector(RAWSXP, (R_xlen_t)base64_decode(v, NULL)));
	base64_decode(v, RAW(out));
	bytes_done(&b);
	UNPROTECT(1);
	return out;
}

#define ROUTINE(name, args) { #name, (DL_FUNC)(void *)name, args }

static const R_CallMethodDef routines[] = {
	ROUTINE(peer_start, 1),  ROUTINE(peer_send, 2),    ROUTINE(peer_receive, 2), ROUTINE(peer_stop, 1),
	ROUTINE(peer_pid, 1),    ROUTINE(value_encode, 2), ROUTINE(value_decode, 1), ROUTINE(text_quote, 1),
	ROUTINE(bytes_encode, 1), ROUTINE(bytes_decode, 1), { NULL, NULL, 0 },
};

void R_init_cordon(DllInfo *dll)
{
	R_registerRoutines(dll, NULL, routines, NULL, NULL);
	R_useDynamicSymbols(dll, FALSE);
}
