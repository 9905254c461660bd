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

#include "inside/guests/r/r_columns.h"

#include <R_ext/Rdynload.h>

extern char **environ;

struct peer {
	int in, out; /* read from, write to; -1: closed */
	pid_t pid, owner;
	struct bytes buf;
	size_t scanned;
	int is_torn; /* reading an attachment was cut short by an R error: nothing can follow it */
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

static bool write_part(void *arg, const void *data, size_t len)
{
	return len == 0 || write_all(((struct peer *)arg)->out, data, len);
}

/* The binary columns that were collected, after the line that announces them. */
static int write_columns(struct peer *p)
{
	fcntl(p->out, F_SETPIPE_SZ, 1 << 20); /* fewer steps, as far as that is allowed */
	return columns_write(write_part, p);
}

/* So many bytes of a file. What is missing at its end is zeroed, because the server counts on it. */
static int write_file(struct peer *p, int fd, double size)
{
	static char part[1 << 16];
	int good = 1;

	while (size > 0 && good) {
		size_t want = size < (double)sizeof(part) ? (size_t)size : sizeof(part);
		ssize_t n = read(fd, part, want);
		if (n <= 0) {
			memset(part, 0, want);
			n = (ssize_t)want;
		}
		good = write_all(p->out, part, (size_t)n);
		size -= (double)n;
	}
	return good;
}

/* The file that follows a line: its descriptor is opened before the line is sent. */
SEXP peer_send_file(SEXP s, SEXP line, SEXP path, SEXP size)
{
	struct peer *p = get(s);
	const char *text = Rf_translateCharUTF8(STRING_ELT(line, 0));
	const char *name = Rf_translateChar(STRING_ELT(path, 0));

	if (p->owner != getpid())
		Rf_error("the connection belongs to another process: this one was forked from it");
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		Rf_error("cannot open '%s': %s", name, strerror(errno));
	int good = p->out >= 0 && write_all(p->out, text, strlen(text)) && write_all(p->out, "\n", 1) &&
		   write_file(p, fd, Rf_asReal(size));
	close(fd);
	return Rf_ScalarLogical(good);
}

/* A line of these pieces; attached: the binary columns follow it. FALSE: the server is gone. */
SEXP peer_send(SEXP s, SEXP pieces, SEXP attached)
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
	if (Rf_asLogical(attached) == TRUE) { /* not of another line that a finalizer sends */
		good = good && write_columns(p);
		columns_end();
	}
	bytes_done(&b);
	return Rf_ScalarLogical(good);
}

/* ---- messages from the server, which contain what a guest says */

static SEXP decode_whole(void *message)
{
	decode_begin(false);
	return decode_value(*(struct json *)message);
}

static SEXP decode_rest(SEXP condition, void *message)
{
	(void)condition;
	decode_begin(true);
	columns_rewind();
	return decode_value(*(struct json *)message);
}

static int has(struct json m, const char *word)
{
	return memmem(m.at, m.len, word, strlen(word)) != NULL;
}

/* R can refuse an attribute or an object that a guest made up; then the message is read without such.
 * Words can be escaped. Looking costs less than R's handlers. */
static SEXP decode_message(struct json m)
{
	if (has(m, "\"attr\"") || has(m, "\"s4\"") || has(m, "\"lang\"") || has(m, "\\u00"))
		return R_tryCatchError(decode_whole, &m, decode_rest, &m);
	return decode_whole(&m);
}

/* The next bytes of an attachment: what was read with its line first. */
static bool read_part(void *arg, void *to, size_t len)
{
	struct peer *p = arg;
	size_t ready = p->buf.len < len ? p->buf.len : len;
	char *at = to;

	if (ready > 0)
		memcpy(at, p->buf.data, ready);
	bytes_drop(&p->buf, ready);
	while (ready < len) {
		ssize_t n = read(p->in, at + ready, len - ready);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		ready += (size_t)n;
	}
	return true;
}

/* The message as a list, with the bytes that followed it as its last element. */
static SEXP with_bytes(struct json m, SEXP raw)
{
	PROTECT(raw);
	SEXP list = PROTECT(decode_message(m));
	R_xlen_t n = Rf_xlength(list);
	SEXP all = PROTECT(Rf_lengthgets(list, n + 1));
	SEXP names = PROTECT(Rf_lengthgets(Rf_getAttrib(list, R_NamesSymbol), n + 1));

	SET_VECTOR_ELT(all, n, raw);
	SET_STRING_ELT(names, n, Rf_mkChar("bytes"));
	Rf_setAttrib(all, R_NamesSymbol, names);
	UNPROTECT(4);
	return all;
}

/* The first line of the buffer, decoded, with its binary columns. */
static SEXP take_message(struct peer *p, size_t len)
{
	static struct bytes line;

	line.len = 0;
	bytes_add(&line, p->buf.data, len);
	bytes_drop(&p->buf, len + 1);
	p->scanned = 0;
	if (!json_check(line.data, line.len))
		Rf_error("the server sent something that is no JSON");
	struct json m = { line.data, line.len };
	columns_drop();
	double attached = json_number(json_get(m, "attachment"), 0);
	struct json table = json_get(json_get(m, "result"), "buffer");
	if (attached > 0 && !json_get(table, "columns").at) {
		p->is_torn = 1;
		SEXP raw = PROTECT(Rf_allocVector(RAWSXP, (R_xlen_t)attached));
		if (!read_part(p, RAW(raw), (size_t)attached))
			attached = -1;
		else
			p->is_torn = 0;
		UNPROTECT(1);
		return attached < 0 ? Rf_ScalarLogical(FALSE) : with_bytes(m, raw);
	}
	if (attached > 0) {
		p->is_torn = 1;
		columns_load(json_get(json_get(m, "result"), "buffer"), read_part, p);
		p->is_torn = 0;
	}
	SEXP v = PROTECT(decode_message(m));
	columns_drop();
	if (line.cap > 1 << 20)
		bytes_done(&line);
	UNPROTECT(1);
	return v;
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
		if (p->is_torn)
			return Rf_ScalarLogical(FALSE);
		if (end)
			return take_message(p, (size_t)(end - p->buf.data));
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

/* From here on large parts of values that are encoded become binary columns. */
SEXP columns_start(void)
{
	columns_begin(1e300); /* the server knows the limit */
	return R_NilValue;
}

/* No further ones. Their table as JSON, and their bytes; NULL: there are none. */
SEXP columns_header(void)
{
	struct bytes b = { 0 };

	columns_pause();
	if (columns_bytes() <= 0) {
		columns_end();
		return R_NilValue;
	}
	columns_table(&b);
	SEXP out = PROTECT(Rf_allocVector(VECSXP, 2));
	SET_VECTOR_ELT(out, 0, Rf_ScalarString(Rf_mkCharLenCE(b.data, (int)b.len, CE_UTF8)));
	SET_VECTOR_ELT(out, 1, Rf_ScalarReal(columns_bytes()));
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
	return decode_message((struct json){ s, len });
}

/* Each text as a string of JSON, in UTF-8. */
SEXP text_quote(SEXP text)
{
	struct bytes b = { 0 };
	SEXP out = PROTECT(Rf_allocVector(STRSXP, Rf_xlength(text)));

	for (R_xlen_t i = 0; i < Rf_xlength(text); i++) {
		const char *s = Rf_translateCharUTF8(STRING_ELT(text, i));
		b.len = 0;
		json_quote(&b, s, strlen(s));
		SET_STRING_ELT(out, i, Rf_mkCharLenCE(b.data, (int)b.len, CE_UTF8));
	}
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
	ROUTINE(peer_start, 1),  ROUTINE(peer_send_file, 4), ROUTINE(peer_send, 3),    ROUTINE(peer_receive, 2), ROUTINE(peer_stop, 1),
	ROUTINE(peer_pid, 1),    ROUTINE(value_encode, 2), ROUTINE(value_decode, 1), ROUTINE(text_quote, 1),
	ROUTINE(bytes_encode, 1), ROUTINE(bytes_decode, 1), ROUTINE(columns_start, 0),
	ROUTINE(columns_header, 0), { NULL, NULL, 0 },
};

void R_init_cordon(DllInfo *dll)
{
	R_registerRoutines(dll, NULL, routines, NULL, NULL);
	R_useDynamicSymbols(dll, FALSE);
	decode_is_guarded = true;
}
