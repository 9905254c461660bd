/* inside/guests/r/r_wire.c - descriptor 3: reads and writes lines, and makes tool calls. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "inside/guests/r/cordon_r.h"
#include "inside/guests/r/turn.h"
#include "inside/lib/streams.h"

/* R's flags for SIGINT, which no header declares. */
extern int R_interrupts_pending;
extern Rboolean R_interrupts_suspended;

static bool is_template;
static bool is_muted;     /* rehearsing: nothing is sent */
static struct bytes in;   /* read, not used yet */
static struct bytes line; /* the current message */
static pid_t owner;       /* a child that the code forks must not use the wire */

SEXP wire_token(SEXP template)
{
	char token[65] = "", *t = getenv("CORDON_TOKEN");
	owner = getpid();
	streams_keep();
	is_template = Rf_asLogical(template) == TRUE;
	if (t) {
		snprintf(token, sizeof(token), "%s", t);
		for (char *p = t; *p; p++) /* also in what /proc shows of the environment */
			*p = 'x';
		unsetenv("CORDON_TOKEN");
	}
	return Rf_mkString(token);
}

void wire_say(const char *data, size_t len)
{
	if (getpid() != owner)
		_exit(0);
	if (!is_muted && bytes_write(R_WIRE, data, len) < 0)
		_exit(0); /* the host is gone */
}

SEXP wire_send(SEXP text)
{
	const char *t = CHAR(STRING_ELT(text, 0));
	struct bytes b = { 0 };
	bytes_text(&b, t);
	bytes_char(&b, '\n');
	wire_say(b.data, b.len);
	bytes_done(&b);
	return R_NilValue;
}

void wire_mute(bool is_on)
{
	is_muted = is_on;
}

/* Opens this execution's stdin; waits until the host has opened its end. */
SEXP wire_stdin(SEXP path)
{
	int fd;
	do
		fd = open(CHAR(STRING_ELT(path, 0)), O_RDONLY | O_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		Rf_error("cannot open stdin: %s", strerror(errno));
	streams_take_input(fd);
	clearerr(stdin);
	return R_NilValue;
}

void wire_flush_all(void)
{
	/* If the code has closed a descriptor, buffered output is written once it is restored. */
	bool failed = fflush(NULL) != 0;
	if (!streams_mend_output())
		_exit(0); /* the host starts another guest */
	if (failed)
		fflush(NULL);
	clearerr(stdout);
	clearerr(stderr);
}

void wire_mend(void)
{
	if (!streams_mend_output())
		_exit(0);
	if (streams_mend_input())
		clearerr(stdin);
}

SEXP wire_flush(void)
{
	wire_flush_all();
	return R_NilValue;
}

/* R's Sys.sleep() replaces the handler of SIGINT and does not always put it back: where the signal
 * comes in the wrong moment, the next one would end R. */
static void keep_handler(void)
{
	static struct sigaction of_r;
	static bool is_known;
	if (is_known)
		sigaction(SIGINT, &of_r, NULL);
	else
		is_known = sigaction(SIGINT, NULL, &of_r) == 0;
}

void wire_interruptible(bool is_allowed)
{
	R_interrupts_suspended = is_allowed ? FALSE : TRUE;
	if (is_allowed)
		R_CheckUserInterrupt(); /* leaves by a jump where one has come meanwhile */
	else
		keep_handler();
}

SEXP wire_interrupts(SEXP allowed)
{
	wire_interruptible(Rf_asLogical(allowed) == TRUE);
	return R_NilValue;
}

bool wire_idle(int ms)
{
	struct pollfd p = { .fd = R_WIRE, .events = POLLIN };
	return !in.len && poll(&p, 1, ms) == 0;
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

/* Reads once; false: end of the stream. A template reads exactly one line: what follows carries
 * descriptors, which a plain read would drop. */
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
	if (is_template) /* the next line may be a spawn request with a session's token */
		explicit_bzero(data, sizeof(data));
	return true;
}

/* Moves the next complete line into `line`; false: none yet. */
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
	streams_keep();
}

bool wire_line(struct json *ret)
{
	for (;;) {
		while (!take_line())
			if (!fill())
				return false;
		if (json_check(line.data, line.len)) {
			*ret = (struct json){ line.data, line.len };
			return true;
		}
	}
}

/* Reads once, and keeps a descriptor that comes with it in *ret_fd. */
static bool fill_with_fd(int *ret_fd)
{
	static char data[65536];
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { data, sizeof(data) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n;
	do
		n = recvmsg(R_WIRE, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
	bytes_add(&in, data, (size_t)n);
	return true;
}

/* Takes the first line out that begins like this; false: none yet. The current message stays. */
static bool take_line_of(const char *start, struct bytes *found)
{
	size_t from = 0, len = strlen(start);
	for (const char *nl; in.len && (nl = memchr(in.data + from, '\n', in.len - from));) {
		size_t n = (size_t)(nl - in.data) - from;
		if (n < len || memcmp(in.data + from, start, len) != 0) {
			from += n + 1;
			continue;
		}
		found->len = 0;
		bytes_add(found, in.data + from, n);
		memmove(in.data + from, nl + 1, in.len - from - n - 1);
		in.len -= n + 1;
		return true;
	}
	return false;
}

int wire_buffer(size_t bytes, char ret_why[96])
{
	struct bytes b = { 0 };
	int fd = -1;
	bytes_format(&b, "{\"type\":\"buffer\",\"id\":%s", turn_id());
	if (bytes)
		bytes_format(&b, ",\"bytes\":%zu", bytes);
	bytes_text(&b, "}\n");
	wire_say(b.data, b.len);
	while (!take_line_of("{\"type\":\"buffer\"", &b))
		if (!fill_with_fd(&fd))
			_exit(0);
	if (fd < 0) {
		struct bytes why = { 0 };
		if (json_check(b.data, b.len))
			json_string(json_get((struct json){ b.data, b.len }, "error"), &why);
		snprintf(ret_why, 96, "%.*s", (int)why.len, why.len ? why.data : "");
		bytes_done(&why);
	}
	bytes_done(&b);
	return fd;
}

/* The options of the welcome; NULL: another message came. */
SEXP wire_welcome(void)
{
	struct json m;
	if (!wire_line(&m) || !json_is(json_get(m, "type"), "welcome"))
		return R_NilValue;
	SEXP options = decode_value(json_get(m, "guest_options"));
	return TYPEOF(options) == VECSXP ? options : Rf_allocVector(VECSXP, 0);
}

SEXP wire_encode(SEXP v, SEXP text, SEXP limit)
{
	static struct bytes b;
	b.len = 0;
	const char *why = encode_value(&b, v, text, turn_limit(limit, false));
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

SEXP wire_output(SEXP mime, SEXP data, SEXP name)
{
	struct bytes b = { 0 };
	if (getpid() != owner)
		return Rf_ScalarLogical(TRUE);
	bytes_format(&b, "{\"type\":\"output\",\"id\":%s,\"mime\":\"%s\",", turn_id(),
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
	bool fits = b.len <= turn_limit(R_NilValue, false);
	if (fits)
		wire_say(b.data, b.len);
	bytes_done(&b);
	return Rf_ScalarLogical(fits);
}

/* ---- interrupts */

/* Whether one of the lines that have come interrupts this execution. */
static bool is_interrupted(const char *id)
{
	struct pollfd p = { .fd = R_WIRE, .events = POLLIN };
	size_t from = 0;
	while (poll(&p, 1, 0) > 0 && fill())
		;
	for (const char *nl; in.len && (nl = memchr(in.data + from, '\n', in.len - from));) {
		struct json m = { in.data + from, (size_t)(nl - in.data) - from };
		from += m.len + 1;
		if (!json_check(m.at, m.len) || !json_is(json_get(m, "type"), "interrupt"))
			continue;
		struct json mid = json_get(m, "id");
		if (mid.len == strlen(id) && memcmp(mid.at, id, mid.len) == 0)
			return true;
	}
	return false;
}

static pid_t begun_by; /* the process that reads the wire */

/* The message comes before the signal, so a signal that was for this execution has its message. */
void wire_begin(const char *id)
{
	begun_by = getpid();
	int was_pending = R_interrupts_pending;
	R_interrupts_pending = 0;
	if (was_pending && is_interrupted(id))
		R_interrupts_pending = 1;
}

/* ---- programs that R waits for */

#define START_MS 200 /* until a program has started and SIGINT ends it */

/* A SIGINT while the program was made reached only R, which ignores it. It is sent once more. */
static void on_start(int signo)
{
	struct pollfd p = { .fd = R_WIRE, .events = POLLIN };
	int saved = errno;
	if (poll(&p, 1, 0) > 0)
		(void)kill(0, SIGINT);
	errno = saved;
	(void)signo;
}

static void watch_start(bool is_on)
{
	static struct sigaction was;
	static bool is_watching;
	struct sigaction mine = { .sa_handler = on_start, .sa_flags = SA_RESTART };
	struct itimerval timer = { .it_value = { .tv_usec = START_MS * 1000L } }, now;
	if (is_on && !is_watching && getitimer(ITIMER_REAL, &now) == 0 &&
	    !timerisset(&now.it_value) && sigaction(SIGALRM, &mine, &was) == 0) {
		is_watching = true;
		(void)setitimer(ITIMER_REAL, &timer, NULL);
	} else if (!is_on && is_watching) {
		is_watching = false;
		timerclear(&timer.it_value);
		(void)setitimer(ITIMER_REAL, &timer, NULL);
		(void)sigaction(SIGALRM, &was, NULL);
	}
}

/* Before and after a program. R's system() ignores SIGINT while it waits: only the program gets it.
 * The wire tells whether one has come for this execution. Not in a process that the code forked:
 * the wire is not its own. */
SEXP wire_program(SEXP begins, SEXP has_timer)
{
	bool is_begin = Rf_asLogical(begins) == TRUE;
	if (getpid() == begun_by) {
		watch_start(false);
		if (!R_interrupts_pending && is_interrupted(turn_id()))
			R_interrupts_pending = 1;
	}
	R_CheckUserInterrupt();
	if (getpid() == begun_by && is_begin && Rf_asLogical(has_timer) == FALSE)
		watch_start(true);
	return R_NilValue;
}

/* Waits until there is something to read. SIGINT comes only while it waits, so none is overlooked
 * just before. */
static void wait_for(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	sigset_t sigint, was;
	int ready = -1;
	sigemptyset(&sigint);
	sigaddset(&sigint, SIGINT);
	while (ready < 0) {
		sigprocmask(SIG_BLOCK, &sigint, &was);
		if (!R_interrupts_pending || R_interrupts_suspended)
			ready = ppoll(&p, 1, NULL, &was);
		sigprocmask(SIG_SETMASK, &was, NULL);
		if (R_interrupts_pending)
			R_CheckUserInterrupt();
	}
}

/* ---- questions to the user */

enum { ANSWER_MAX = 65536 };

/* One line of stdin without its end; "" at the end of stdin. Byte by byte: the rest is for others.
 */
SEXP wire_readline(void)
{
	static char text[ANSWER_MAX];
	size_t len = 0;
	ssize_t n = 1;
	char c = 0;
	while (n > 0 && c != '\n' && len < sizeof(text)) {
		wait_for(0);
		n = read(0, &c, 1);
		if (n > 0 && c && c != '\n')
			text[len++] = c;
	}
	return Rf_ScalarString(Rf_mkCharLenCE(text, (int)len, CE_UTF8));
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

/* Waits for the answer to this call and ignores other messages. A SIGINT leaves by a jump, but only
 * between reads, so no byte is lost. */
static SEXP answer(const char *id, unsigned long call)
{
	for (;;) {
		while (!take_line()) {
			wait_for(R_WIRE);
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

/* A bit of the guest's `plain`; 0: has to be looked at. */
static int plain_bit(SEXP v)
{
	if (Rf_isObject(v))
		return 0;
	switch (TYPEOF(v)) {
	case REALSXP:
		return 1;
	case INTSXP:
		return 2;
	case LGLSXP:
		return 4;
	case STRSXP:
		return 8;
	case RAWSXP:
		return 16;
	case VECSXP:
		return 32;
	default:
		return 0;
	}
}

/* In R the same takes 2 us of processor time more. */
SEXP wire_fits(SEXP args, SEXP plain)
{
	R_xlen_t count = XLENGTH(args);
	bool fits = count == XLENGTH(plain);
	for (R_xlen_t i = 0; fits && i < count; i++)
		fits = plain_bit(VECTOR_ELT(args, i)) & INTEGER(plain)[i];
	return Rf_ScalarLogical(fits);
}

/* max: bytes of the message; text: the function that prints values without a data form. */
SEXP wire_call(SEXP name, SEXP args, SEXP max, SEXP text)
{
	static struct bytes b;
	const char *id = turn_id();
	size_t limit = turn_limit(max, true);
	char why[160];
	if (getpid() != owner)
		return failed("tools can only be called from the session's own process");
	unsigned long call = turn_next_call();
	if (!call)
		return failed("tools can only be called while an execution runs");
	b.len = 0;
	bytes_format(&b, "{\"type\":\"tool_call\",\"id\":%s,\"call\":%lu,\"tool\":", id, call);
	const char *n = CHAR(STRING_ELT(name, 0));
	json_quote(&b, n, strlen(n));
	bytes_text(&b, ",\"args\":");
	const char *bad = XLENGTH(args) ? encode_value(&b, args, text, limit) : NULL;
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
	wire_say(b.data, b.len);
	return answer(id, call);
}
