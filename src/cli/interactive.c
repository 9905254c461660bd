/* cli/interactive.c - see interactive.h. */
#include "cli/interactive.h"

#include <cordon/command.h>
#include <cordon/files.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/choice.h"
#include "cli/notebook.h"

#define FOLDER "/tmp/.cordon"
enum { COMMAND_MAX = 64 << 10, TYPED = 4096, AGAIN_MS = 10 };

static int check_streams(struct cordon_error **reterr)
{
	if (isatty(0) && isatty(1))
		return 0;
	return err_set(reterr, CORDON_INVALID,
		       "-it needs a terminal, and standard %s is none; leave -it out",
		       isatty(0) ? "output" : "input");
}

int interactive_refuse(const struct cli *c, const char *file)
{
	static const char *const others[] = { "json", "validate", "context", "out-dir",
					      "show", "tools",    "output",  "keep-going" };
	cleanup_error struct cordon_error *e = NULL;

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (cli_has(c, others[i]))
			return cli_usage(c, "--%s is not for programs on a terminal", others[i]);
	if (file && (str_eq(file, "-") || notebook_is(file)))
		return cli_usage(c, "'%s' cannot run on a terminal", file);
	if (str_eq(cli_value(c, "guest"), "pod"))
		return cli_usage(c, "a pod has no terminals");
	return check_streams(&e) < 0 ? choice_fail(c, e) : 0;
}

/* R reads its own commands from the terminal then, so that readline() and menu() ask. */
static const char r_profile[] =
	"local({\n"
	"  .First.sys()\n"
	"  file <- Sys.getenv(\"CORDON_RUN\")\n"
	"  Sys.unsetenv(c(\"CORDON_RUN\", \"R_PROFILE_USER\"))\n"
	"  tryCatch(source(file, local = globalenv(), print.eval = TRUE), error = function(e) {\n"
	"    call <- conditionCall(e)\n"
	"    message(if (is.null(call)) \"Error: \" else paste0(\"Error in \", deparse(call)[1], "
	"\" : \"),\n"
	"            conditionMessage(e))\n"
	"    quit(\"no\", 1)\n"
	"  })\n"
	"  quit(\"no\", 0)\n"
	"})\n";

static int add_quoted(struct buf *b, const char *text)
{
	int r = buf_add_char(b, '\'');

	for (; r == 0 && *text; text++)
		r = *text == '\'' ? buf_add_str(b, "'\\''") : buf_add_char(b, *text);
	return r < 0 ? r : buf_add_char(b, '\'');
}

static int add_word(struct buf *b, const char *text)
{
	int r = buf_add_char(b, ' ');

	return r < 0 ? r : add_quoted(b, text);
}

static int add_r_profile(struct buf *b, const char *path)
{
	int r = buf_add_str(b, "R_PROFILE_USER=" FOLDER "/profile.R CORDON_RUN=");

	if (r == 0)
		r = add_quoted(b, path);
	return r < 0 ? r : buf_add_char(b, ' ');
}

/* How each language is started: for its prompt, and for a script. */
static const struct starter {
	const char *guest, *program, *prompt, *script;
} starters[] = { { "python", "python3", " -q", "" },
		 { "r", "R", " --quiet --no-save", " --quiet --no-save --no-restore --args" },
		 { "node", "node", "", "" },
		 { "sh", "bash", "", "" } };

static const struct starter *starter_of(const char *guest)
{
	size_t i = 0;

	while (i + 1 < sizeof(starters) / sizeof(*starters) && !str_eq(guest, starters[i].guest))
		i++;
	return &starters[i];
}

/* The interpreter that the policy names; the caller frees it. NULL: the system's. */
static char *interpreter_of(const struct cordon_policy *p, const char *guest)
{
	cleanup_free char *text = cordon_policy_json(p);
	cleanup_json json_t *j = NULL;

	if (!text || json_parse(text, strlen(text), 0, &j, NULL) < 0)
		return NULL;
	return str_dup(
		json_string_value(json_object_get(j, str_eq(guest, "sh") ? "shell" : guest)));
}

/* When its time is over; 0: never. */
static deadline_ns time_limit(const struct interactive *w)
{
	cleanup_free char *text = cordon_policy_json(w->policy);
	cleanup_json json_t *j = NULL;

	if (w->timeout_ms || !text || json_parse(text, strlen(text), 0, &j, NULL) < 0)
		return w->timeout_ms == UINT64_MAX ? 0 : deadline_after_ms(w->timeout_ms);
	json_int_t ms = json_integer_value(json_object_get(j, "timeout_ms"));
	return ms > 0 ? deadline_after_ms((uint64_t)ms) : 0;
}

/* Only guests get an interpreter from elsewhere, with its settings; bash starts what /usr has. */
static int check_interpreter(const char *path, struct cordon_error **reterr)
{
	if (!path || str_starts(path, "/usr/"))
		return 0;
	return err_set(reterr, CORDON_UNSUPPORTED,
		       "-it takes an interpreter of /usr, not '%s'; leave -it out", path);
}

/* The command line for bash. */
static int make_command(const struct interactive *w, const char *interpreter, const char *path,
			struct buf *b)
{
	const struct starter *how = starter_of(w->guest);
	bool is_r = str_eq(w->guest, "r");
	int r = path && is_r ? add_r_profile(b, path) : 0;

	if (r == 0)
		r = buf_add_str(b, "exec");
	if (r == 0)
		r = add_word(b, interpreter ? interpreter : how->program);
	if (r == 0)
		r = buf_add_str(b, path ? how->script : how->prompt);
	if (r == 0 && path && !is_r)
		r = add_word(b, path);
	for (const char *const *a = w->args; r == 0 && path && *a; a++)
		r = add_word(b, *a);
	return r;
}

static int put_code(struct cordon_session *s, const struct interactive *w, char **ret_path,
		    struct cordon_error **reterr)
{
	if (!w->code)
		return 0;
	cleanup_free char *path = str_printf(FOLDER "/%s", w->name);
	if (!path)
		return err_errno(reterr, ENOMEM, "run the code");
	int r = cordon_file_write(s, path, buf_text(w->code), w->code->len, reterr);
	if (r == 0 && str_eq(w->guest, "r"))
		r = cordon_file_write(s, FOLDER "/profile.R", r_profile, strlen(r_profile), reterr);
	if (r == 0)
		*ret_path = TAKE_PTR(path);
	return r;
}

/* Signals, and the end of the program, as bytes: its handlers and callbacks only write here. */
static int news[2] = { -1, -1 };
enum { ENDED = 0 };

static void tell(int signo)
{
	int e = errno;
	unsigned char byte = (unsigned char)signo;

	(void)!write(news[1], &byte, 1);
	errno = e;
}

static void tell_end(uint64_t process, void *arg)
{
	(void)process, (void)arg;
	tell(ENDED);
}

/* The user's terminal, opened anew: that it does not block is not to be seen by others. */
static int screen_fd = -1;
/* Nobody may wait for a terminal that takes nothing any more: the program was told to end, or its
 * time is over. */
static atomic_bool is_told, is_unread;
static deadline_ns time_over;

enum { LOOK_MS = 50 };

static bool waits_on(void)
{
	struct pollfd p = { .fd = screen_fd, .events = POLLOUT };

	if (is_told || (time_over && deadline_is_over(time_over)))
		return false;
	(void)poll(&p, 1, LOOK_MS);
	return true;
}

static void show(int stream, const char *bytes, size_t len, void *arg)
{
	(void)stream, (void)arg;
	while (len > 0) {
		ssize_t n = write(screen_fd, bytes, len);

		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (n < 0 && errno != EINTR && (errno != EAGAIN || !waits_on())) {
			is_unread = true;
			return;
		}
	}
}

static const int caught[] = { SIGWINCH, SIGTERM, SIGHUP, SIGINT, SIGQUIT };
enum { CAUGHT = sizeof(caught) / sizeof(*caught) };

struct screen {
	struct termios before;
	struct sigaction actions[CAUGHT];
};

static int screen_begin(struct screen *x, struct cordon_error **reterr)
{
	struct sigaction sa = { .sa_handler = tell };

	if (pipe2(news, O_CLOEXEC | O_NONBLOCK) != 0 || tcgetattr(0, &x->before) != 0)
		return err_errno(reterr, errno, "use the terminal");
	screen_fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (screen_fd < 0) /* it may belong to another user */
		screen_fd = fcntl(1, F_DUPFD_CLOEXEC, 3);
	for (int i = 0; i < CAUGHT; i++)
		(void)sigaction(caught[i], &sa, &x->actions[i]);
	struct termios raw = x->before;
	cfmakeraw(&raw);
	(void)tcsetattr(0, TCSANOW, &raw);
	return 0;
}

static void screen_end(const struct screen *x)
{
	if (is_told || is_unread) /* room for what this program says itself */
		(void)tcflush(0, TCOFLUSH);
	/* The terminal's answers to what the code asked it would be typed at the next prompt. */
	(void)tcflush(0, TCIFLUSH);
	(void)tcsetattr(0, TCSANOW, &x->before); /* to drain it, somebody would have to read */
	for (int i = 0; i < CAUGHT; i++)
		(void)sigaction(caught[i], &x->actions[i], NULL);
	close_fdp(&news[0]);
	close_fdp(&news[1]);
	close_fdp(&screen_fd);
}

static void resize(struct cordon_session *s, uint64_t process)
{
	struct winsize w;

	if (ioctl(0, TIOCGWINSZ, &w) == 0 && w.ws_row > 0 && w.ws_col > 0)
		(void)cordon_process_resize(s, process, w.ws_row, w.ws_col, NULL);
}

struct typed {
	char bytes[TYPED];
	size_t from, to;
};

/* False: the user's terminal is gone. */
static bool take_keys(struct typed *t)
{
	ssize_t n = read(0, t->bytes, sizeof(t->bytes));

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		return false;
	t->from = 0;
	t->to = n > 0 ? (size_t)n : 0;
	return true;
}

static void pass_keys(struct cordon_session *s, uint64_t process, struct typed *t)
{
	size_t done = 0;

	if (t->from == t->to)
		return;
	if (cordon_process_write(s, process, t->bytes + t->from, t->to - t->from, &done, NULL) < 0)
		t->from = t->to; /* it has ended */
	else
		t->from += done;
}

/* Until the program has ended. Returns the signal that asked for it, or 0. */
static int attend(struct cordon_session *s, uint64_t process)
{
	struct typed typed = { .from = 0, .to = 0 };
	int why = 0;

	for (;;) {
		bool is_full = typed.from < typed.to;
		struct pollfd p[] = { { .fd = news[0], .events = POLLIN },
				      { .fd = is_full || why ? -1 : 0, .events = POLLIN } };
		unsigned char byte;

		if (poll(p, 2, is_full ? AGAIN_MS : -1) < 0 && errno != EINTR)
			return why;
		while (read(news[0], &byte, 1) == 1) {
			if (byte == ENDED)
				return why;
			if (byte == SIGWINCH)
				resize(s, process);
			else
				why = byte;
		}
		if (p[1].revents && !take_keys(&typed))
			why = SIGHUP;
		pass_keys(s, process, &typed);
		if (why) {
			is_told = true;
			(void)cordon_process_kill(s, process, NULL);
		}
	}
}

int interactive_run(struct cordon_session *s, const struct interactive *what,
		    struct cordon_result **ret, int *ret_signal, struct cordon_error **reterr)
{
	cleanup_free char *path = NULL;
	cleanup_buf struct buf command = { 0 };
	struct cordon_command_options o = { .timeout_ms = what->timeout_ms,
					    .output = show,
					    .discard_output = true,
					    .ended = tell_end,
					    .pty = true };
	struct winsize w = { 0 };
	struct screen screen;
	uint64_t process = 0;
	cleanup_free char *interpreter = interpreter_of(what->policy, what->guest);
	int r = check_interpreter(interpreter, reterr);

	if (r == 0)
		r = put_code(s, what, &path, reterr);
	buf_init(&command, COMMAND_MAX);
	if (r == 0 && make_command(what, interpreter, path, &command) < 0)
		r = err_set(reterr, CORDON_INVALID, "the arguments are too long");
	if (r < 0)
		return r;
	o.command = buf_text(&command);
	if (ioctl(0, TIOCGWINSZ, &w) == 0) {
		o.pty_rows = w.ws_row;
		o.pty_columns = w.ws_col;
	}
	r = screen_begin(&screen, reterr);
	if (r < 0)
		return r;
	time_over = time_limit(what);
	r = cordon_process_start(s, &o, &process, reterr);
	if (r == 0) {
		*ret_signal = attend(s, process);
		r = cordon_process_wait(s, process, UINT64_MAX, ret, reterr);
	}
	screen_end(&screen);
	return r;
}
