/* guests/r/wire.c - descriptor 3: lines in and out, and the round trip of a tool call. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <R_ext/PrtUtil.h>

#include "cordon_r.h"

/* R's own flags for SIGINT, which no header declares. */
extern int R_interrupts_pending;
extern Rboolean R_interrupts_suspended;

static bool is_template;
static bool is_muted;     /* rehearsing */
static struct bytes in;   /* what was read and not yet taken */
static struct bytes line; /* the message being looked at */
static pid_t owner;       /* a child that the code forks may not speak */

SEXP wire_token(SEXP template)
{
	char token[65] = "", *t = getenv("CORDON_TOKEN");
	owner = getpid();
	is_template = Rf_asLogical(template) == TRUE;
	if (t) {
		snprintf(token, sizeof(token), "%s", t);
		for (char *p = t; *p; p++) /* also in what /proc shows of the environment */
			*p = 'x';
		unsetenv("CORDON_TOKEN");
	}
	return Rf_mkString(token);
}

static void say(const char *data, size_t len)
{
	if (!is_muted && bytes_write(R_WIRE, data, len) < 0)
		_exit(0); /* the host has gone */
}

SEXP wire_send(SEXP text)
{
	const char *t = CHAR(STRING_ELT(text, 0));
	struct bytes b = { 0 };
	if (getpid() != owner)
		_exit(0);
	bytes_text(&b, t);
	bytes_char(&b, '\n');
	say(b.data, b.len);
	bytes_done(&b);
	return R_NilValue;
}

SEXP wire_mute(SEXP on)
{
	is_muted = Rf_asLogical(on) == TRUE;
	return R_NilValue;
}

/* This execution's own stdin: waits until the host has opened its end. */
SEXP wire_stdin(SEXP path)
{
	int fd;
	do
		fd = open(CHAR(STRING_ELT(path, 0)), O_RDONLY | O_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		Rf_error("cannot open stdin: %s", strerror(errno));
	if (fd != 0) { /* as it is where the code closed the last */
		dup2(fd, 0);
		close(fd);
	}
	fcntl(0, F_SETFD, 0);
	clearerr(stdin);
	return R_NilValue;
}

SEXP wire_flush(void)
{
	fflush(NULL);
	return R_NilValue;
}

SEXP wire_interrupts(SEXP allowed)
{
	bool on = Rf_asLogical(allowed) == TRUE;
	if (on)
		R_interrupts_pending = 0;
	R_interrupts_suspended = on ? FALSE : TRUE;
	return R_NilValue;
}

SEXP wire_random(void)
{
	int x = 1;
	if (getrandom(&x, sizeof(x), 0) != sizeof(x) || x == NA_INTEGER)
		x = (int)getpid();
	return Rf_ScalarInteger(x);
}

SEXP wire_idle(SEXP ms)
{
	struct pollfd p = { .fd = R_WIRE, .events = POLLIN };
	return Rf_ScalarLogical(!in.len && poll(&p, 1, Rf_asInteger(ms)) == 0);
}

SEXP wire_address(SEXP name, SEXP env)
{
	SEXP v = Rf_findVarInFrame3(env, Rf_installTrChar(STRING_ELT(name, 0)), TRUE);
	return Rf_ScalarReal(v == R_UnboundValue ? 0 : (double)(uintptr_t)v);
}

SEXP wire_quote(SEXP text)
{
	struct bytes b = { 0 };
	const void *top = vmaxget();
	const char *t = Rf_translateCharUTF8(STRING_ELT(text, 0));
	json_quote(&b, t, strlen(t));
	SEXP out = PROTECT(Rf_ScalarString(Rf_mkCharLenCE(b.data, (int)b.len, CE_UTF8)));
	bytes_done(&b);
	vmaxset(top);
	UNPROTECT(1);
	return out;
}

/* What print() shows of a vector of one number or word: by R's own formatting, but without the
 * connections and methods that capturing the output of print() takes (0.1 ms). */
SEXP wire_text(SEXP v)
{
	struct bytes b = { 0 };
	int w, d, e;
	if ((TYPEOF(v) != REALSXP && TYPEOF(v) != INTSXP && TYPEOF(v) != LGLSXP) ||
	    XLENGTH(v) != 1 || ATTRIB(v) != R_NilValue)
		return R_NilValue;
	bytes_text(&b, "[1] ");
	if (TYPEOF(v) == REALSXP) {
		Rf_formatReal(REAL(v), 1, &w, &d, &e, 0);
		bytes_text(&b, Rf_EncodeReal0(REAL(v)[0], w, d, e, "."));
	} else if (TYPEOF(v) == INTSXP && INTEGER(v)[0] != NA_INTEGER) {
		bytes_format(&b, "%d", INTEGER(v)[0]);
	} else if (TYPEOF(v) == LGLSXP) {
		int x = LOGICAL(v)[0];
		bytes_text(&b, x == NA_LOGICAL ? "NA" : x ? "TRUE" : "FALSE");
	} else {
		bytes_done(&b);
		return R_NilValue;
	}
	SEXP out = Rf_ScalarString(Rf_mkCharLenCE(b.data, (int)b.len, CE_UTF8));
	bytes_done(&b);
	return out;
}

/* Reads once; false at the end of the stream. A template reads not a byte more than the line: what
 * follows brings descriptors, which a plain read would throw away. */
static bool fill(void)
{
	static char data[65536];
	size_t want = sizeof(data);
	ssize_t n;
	do {
		n = is_template ? recv(R_WIRE, data, want, MSG_PEEK) : 1;
		if (n > 0 && is_template) {
			char *nl = memchr(data, '\n', (size_t)n);
			want = nl ? (size_t)(nl - data) + 1 : (size_t)n;
		}
		if (n > 0)
			n = recv(R_WIRE, data, want, 0);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	bytes_add(&in, data, (size_t)n);
	return true;
}

/* Moves the next whole line into `line`; false: there is none yet. */
static bool take_line(void)
{
	char *nl = in.len ? memchr(in.data, '\n', in.len) : NULL;
	if (!nl)
		return false;
	size_t n = (size_t)(nl - in.data);
	line.len = 0;
	bytes_add(&line, in.data, n);
	bytes_char(&line, 0);
	line.len--;
	bytes_drop(&in, n + 1);
	return true;
}

void wire_renew(void)
{
	is_template = false;
	owner = getpid();
}

static void put(SEXP list, SEXP names, int i, const char *name, SEXP v)
{
	SET_VECTOR_ELT(list, i, v);
	SET_STRING_ELT(names, i, Rf_mkChar(name));
}

SEXP wire_context(void)
{
	return decode_value(json_get((struct json){ line.data, line.len }, "context"));
}

/* type, id (as JSON text), code, context (whether there is one), env, guest_options, validate,
 * directory. */
static SEXP message(struct json m)
{
	struct json id = json_get(m, "id"), code = json_get(m, "code");
	SEXP out = PROTECT(Rf_allocVector(VECSXP, 9)), names = PROTECT(Rf_allocVector(STRSXP, 9));
	put(out, names, 0, "type", decode_value(json_get(m, "type")));
	put(out, names, 1, "id",
	    Rf_ScalarString(
		    Rf_mkCharLenCE(id.len ? id.at : "0", id.len ? (int)id.len : 1, CE_UTF8)));
	put(out, names, 2, "code", code.len ? decode_value(code) : Rf_mkString(""));
	put(out, names, 3, "context", Rf_ScalarLogical(json_kind(json_get(m, "context")) == '{'));
	put(out, names, 4, "env", decode_value(json_get(m, "env")));
	put(out, names, 5, "options", decode_value(json_get(m, "guest_options")));
	put(out, names, 6, "validate", Rf_ScalarLogical(json_kind(json_get(m, "validate")) == 't'));
	put(out, names, 7, "directory", decode_value(json_get(m, "directory")));
	put(out, names, 8, "stdin", decode_value(json_get(m, "stdin")));
	Rf_setAttrib(out, R_NamesSymbol, names);
	UNPROTECT(2);
	return out;
}

SEXP wire_next(void)
{
	for (;;) {
		while (!take_line())
			if (!fill())
				return R_NilValue;
		if (json_check(line.data, line.len))
			return message((struct json){ line.data, line.len });
	}
}

SEXP wire_encode(SEXP v, SEXP text, SEXP limit)
{
	static struct bytes b;
	b.len = 0;
	const char *why = encode_value(&b, v, text, (size_t)Rf_asReal(limit));
	if (why) {
		SEXP out = PROTECT(Rf_allocVector(VECSXP, 1));
		SET_VECTOR_ELT(out, 0, Rf_mkString(why));
		UNPROTECT(1);
		return out;
	}
	SEXP out = Rf_ScalarString(Rf_mkCharLenCE(b.data, (int)b.len, CE_UTF8));
	if (b.cap > 1 << 20)
		bytes_done(&b);
	return out;
}

SEXP wire_output(SEXP id, SEXP mime, SEXP data, SEXP name, SEXP limit)
{
	struct bytes b = { 0 };
	if (getpid() != owner)
		return Rf_ScalarLogical(TRUE);
	bytes_format(&b, "{\"type\":\"output\",\"id\":%s,\"mime\":\"%s\",", CHAR(STRING_ELT(id, 0)),
		     CHAR(STRING_ELT(mime, 0)));
	if (TYPEOF(data) == RAWSXP) {
		bytes_text(&b, "\"encoding\":\"base64\",\"data\":\"");
		base64_encode(&b, RAW(data), (size_t)XLENGTH(data));
		bytes_char(&b, '"');
	} else {
		const void *top = vmaxget();
		const char *t = Rf_translateCharUTF8(STRING_ELT(data, 0));
		bytes_text(&b, "\"encoding\":\"text\",\"data\":");
		json_quote(&b, t, strlen(t));
		vmaxset(top);
	}
	if (TYPEOF(name) == STRSXP) {
		const char *t = CHAR(STRING_ELT(name, 0));
		bytes_text(&b, ",\"name\":");
		json_quote(&b, t, strlen(t));
	}
	bytes_text(&b, "}\n");
	bool fits = (double)b.len <= Rf_asReal(limit);
	if (fits)
		say(b.data, b.len);
	bytes_done(&b);
	return Rf_ScalarLogical(fits);
}

/* ---- tools */

static SEXP failed(const char *why)
{
	SEXP out = PROTECT(Rf_allocVector(VECSXP, 1));
	SET_VECTOR_ELT(out, 0, Rf_mkString(why));
	Rf_setAttrib(out, R_NamesSymbol, Rf_mkString("error"));
	UNPROTECT(1);
	return out;
}

/* Waits for the answer to this call; anything else that comes is an answer to nobody. A SIGINT
 * leaves by a jump, between whole reads, so that no byte is lost. */
static SEXP answer(const char *id, unsigned long call)
{
	for (;;) {
		while (!take_line()) {
			struct pollfd p = { .fd = R_WIRE, .events = POLLIN };
			if (poll(&p, 1, -1) < 0) {
				R_CheckUserInterrupt();
				continue;
			}
			if (!fill())
				_exit(0);
		}
		if (!json_check(line.data, line.len))
			continue;
		struct json m = { line.data, line.len }, mid = json_get(m, "id");
		if (!json_is(json_get(m, "type"), "tool_result") || mid.len != strlen(id) ||
		    memcmp(mid.at, id, mid.len) != 0 || json_number(json_get(m, "call"), 0) != call)
			continue;
		struct json error = json_get(m, "error");
		SEXP out = PROTECT(Rf_allocVector(VECSXP, 1));
		SET_VECTOR_ELT(out, 0, decode_value(error.len ? error : json_get(m, "value")));
		if (error.len)
			Rf_setAttrib(out, R_NamesSymbol, Rf_mkString("error"));
		UNPROTECT(1);
		return out;
	}
}

/* state: list(id, counter environment's number, message_bytes, text function). */
SEXP wire_call(SEXP name, SEXP args, SEXP state)
{
	static struct bytes b;
	const char *id = CHAR(STRING_ELT(VECTOR_ELT(state, 0), 0));
	unsigned long call = (unsigned long)Rf_asReal(VECTOR_ELT(state, 1));
	size_t limit = (size_t)Rf_asReal(VECTOR_ELT(state, 2));
	char why[160];
	if (getpid() != owner)
		return failed("tools can only be called from the session's own process");
	b.len = 0;
	bytes_format(&b, "{\"type\":\"tool_call\",\"id\":%s,\"call\":%lu,\"tool\":", id, call);
	const char *n = CHAR(STRING_ELT(name, 0));
	json_quote(&b, n, strlen(n));
	bytes_text(&b, ",\"args\":");
	const char *bad =
		XLENGTH(args) ? encode_value(&b, args, VECTOR_ELT(state, 3), limit) : NULL;
	if (!XLENGTH(args))
		bytes_text(&b, "{}");
	if (bad) {
		snprintf(why, sizeof(why), "an argument cannot cross: %s", bad);
		return failed(why);
	}
	bytes_text(&b, "}\n");
	if (b.len > limit) {
		snprintf(why, sizeof(why), "IPC message too large (%zu bytes, max %zu)", b.len,
			 limit);
		return failed(why);
	}
	say(b.data, b.len);
	return answer(id, call);
}
