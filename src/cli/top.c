/* cli/top.c - `cordon top`: the live sessions of a server and what they use. */
#include <cordon/cordon.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/companion.h"
#include "cli/top_table.h"
#include "cli/verb.h"

/* The console's list: it counts as no use of a session, and keeps none alive. */
#define LIST "/console/sessions"

enum { ANSWER_MAX = 16 << 20, EVERY_MS = 1000, TEXT_MAX = 4 << 20, OTHER_LINES = 4 };

static volatile sig_atomic_t is_told;

static void tell(int signal)
{
	(void)signal;
	is_told = 1;
}

struct top {
	const struct cli *c;
	const char *server;
	char program[PATH_MAX];
	bool is_live, has_left;
	struct termios before;
};

/* Takes what was typed; q, ^C, ^D and the end of input leave. */
static void take_keys(struct top *t)
{
	char keys[64];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		t->has_left = true;
	for (ssize_t i = 0; i < n; i++)
		if (keys[i] == 'q' || keys[i] == 'Q' || keys[i] == 3 || keys[i] == 4)
			t->has_left = true;
}

/* Waits for bytes of fd (-1: for none), or until the deadline, and for keys meanwhile. True: fd has
 * something. */
static bool wait_for(struct top *t, int fd, deadline_ns until)
{
	while (!t->has_left) {
		struct pollfd p[2] = { { .fd = fd, .events = POLLIN },
				       { .fd = t->is_live ? STDIN_FILENO : -1, .events = POLLIN } };
		int n = poll(p, 2, fd >= 0 ? -1 : deadline_poll_ms(until));

		if (is_told)
			t->has_left = true;
		else if (n > 0 && p[0].revents)
			return true;
		else if (n > 0 && p[1].revents)
			take_keys(t);
		else if (n == 0)
			break;
	}
	return false;
}

/* Starts cordon-connect, which has TLS. The key stays in the environment. */
static pid_t start(const struct top *t, int *ret_fd)
{
	int ends[2];

	if (pipe(ends) != 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		if (dup2(ends[1], STDOUT_FILENO) >= 0) {
			close(ends[0]);
			close(ends[1]);
			(void)execl(t->program, "cordon-connect", "--get", LIST, t->server,
				    cli_value(t->c, "ca"), NULL);
		}
		_exit(127);
	}
	close(ends[1]);
	if (pid < 0)
		close(ends[0]);
	else
		*ret_fd = ends[0];
	return pid;
}

/* What cordon-connect has printed, until it has ended. */
static int collect(struct top *t, struct buf *ret, int *ret_status, struct cordon_error **reterr)
{
	cleanup_close int fd = -1;
	pid_t pid = start(t, &fd);
	int status = 0, r = 0;
	ssize_t n = 1;

	if (pid < 0)
		return err_errno(reterr, errno, "start cordon-connect");
	while (r == 0 && n > 0 && wait_for(t, fd, 0)) {
		char bytes[4096];
		n = read(fd, bytes, sizeof(bytes));
		r = n > 0 ? buf_add(ret, bytes, (size_t)n) : 0;
	}
	if (t->has_left || r < 0)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
	return r < 0 ? err_set(reterr, CORDON_LIMIT, "the server's answer is too long") : 0;
}

/* *ret: the array of sessions, a new reference; NULL if the user has left. */
static int fetch(struct top *t, json_t **ret, struct cordon_error **reterr)
{
	cleanup_buf struct buf text = { 0 };
	cleanup_json json_t *answer = NULL;
	int status = 0;

	buf_init(&text, ANSWER_MAX);
	int r = collect(t, &text, &status, reterr);
	if (r < 0 || t->has_left)
		return r;
	if (json_parse(buf_text(&text), text.len, 0, &answer, NULL) < 0)
		return err_set(reterr, CORDON_OS, "the server's answer is not valid JSON");
	const char *why =
		json_string_value(json_object_get(json_object_get(answer, "error"), "message"));
	json_t *sessions = json_object_get(answer, "sessions");
	if (status != 0 && why)
		return err_set(reterr, CORDON_OS, "%s", why);
	if (status != 0 || !json_is_array(sessions))
		return err_set(reterr, CORDON_OS, "the server's answer has no sessions");
	*ret = json_incref(sessions);
	return 0;
}

static size_t rows_of_screen(void)
{
	struct winsize w = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_row <= OTHER_LINES)
		return 20;
	return w.ws_row - OTHER_LINES;
}

static int draw(const struct top *t, json_t *sessions, struct cordon_error **reterr)
{
	cleanup_buf struct buf b = { 0 };
	cleanup_free char *json = NULL;
	int r = 0;

	buf_init(&b, TEXT_MAX);
	if (t->is_live)
		r = buf_add_str(&b, "\033[H\033[2J");
	if (cli_has(t->c, "json")) {
		json = json_text(sessions, NULL);
		r = json ? buf_printf(&b, "%s\n", json) : -CORDON_NOMEM;
	} else if (r == 0) {
		r = top_table_add(&b, sessions, t->is_live ? rows_of_screen() : SIZE_MAX);
	}
	if (r == 0 && t->is_live)
		r = buf_add_str(&b, "q leaves");
	if (r < 0)
		return err_set(reterr, CORDON_LIMIT, "there are too many sessions to show");
	int failed = file_write_all(STDOUT_FILENO, buf_text(&b), b.len);
	return failed < 0 ? err_errno(reterr, -failed, "write to standard output") : 0;
}

static int show_once(struct top *t, struct cordon_error **reterr)
{
	cleanup_json json_t *sessions = NULL;
	int r = fetch(t, &sessions, reterr);

	return r == 0 && sessions ? draw(t, sessions, reterr) : r;
}

/* Keys come one by one and unseen; the screen is another one, so that ours comes back. */
static int begin_live(struct top *t, struct cordon_error **reterr)
{
	struct sigaction sa = { .sa_handler = tell };

	if (tcgetattr(STDIN_FILENO, &t->before) != 0)
		return err_errno(reterr, errno, "read the terminal's mode");
	struct termios raw = t->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
	(void)sigaction(SIGTERM, &sa, NULL);
	(void)sigaction(SIGHUP, &sa, NULL);
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	(void)file_write_all(STDOUT_FILENO, "\033[?1049h", 8);
	return 0;
}

static void end_live(const struct top *t)
{
	(void)file_write_all(STDOUT_FILENO, "\033[?1049l", 8);
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &t->before);
}

static int show_live(struct top *t, struct cordon_error **reterr)
{
	int r = begin_live(t, reterr);

	if (r < 0)
		return r;
	while (r == 0 && !t->has_left) {
		r = show_once(t, reterr);
		if (r == 0)
			(void)wait_for(t, -1, deadline_after_ms(EVERY_MS));
	}
	end_live(t);
	return r;
}

static bool can_be_live(const struct cli *c)
{
	const char *term = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
	       !str_eq(term, "dumb") && !cli_has(c, "json");
}

static int run(struct cli *c, int argc, char **argv)
{
	cleanup_error struct cordon_error *e = NULL;
	struct top t = { .c = c, .server = cli_value(c, "server"), .is_live = can_be_live(c) };

	(void)argc;
	(void)argv;
	if (!t.server)
		t.server = getenv("CORDON_SERVER");
	if (!t.server || !*t.server)
		return cli_usage(c, "name the server: --server URL, or the variable CORDON_SERVER");
	if (!companion_find("cordon-connect", t.program, sizeof(t.program))) {
		cli_error(c, "cordon-connect is missing: install all of cordon");
		return cordon_code_exit_status(CORDON_UNSUPPORTED);
	}
	int r = t.is_live ? show_live(&t, &e) : show_once(&t, &e);
	return r < 0 ? cli_fail(c, e) : 0;
}

static const struct cli_option options[] = {
	{ "server", 's', "URL", "https://HOST, http:// on the loopback, unix:PATH", false },
	{ "ca", 0, "FILE", "trust these authorities instead of the system's", false },
	{ "json", 'j', NULL, "print the sessions once, as one line of JSON", false },
	{ 0 },
};

static const struct cli_example examples[] = {
	{ "CORDON_KEY=... cordon top --server https://cordon.example", "q leaves" },
	{ "cordon top --server unix:/run/cordon/serve.sock | head", "printed once" },
	{ 0 },
};

const struct verb verb_top = {
	.name = "top",
	.summary = "show the live sessions of a server",
	.usage = "[OPTION...]",
	.options = options,
	.run = run,
	.about =
		"Shows the sessions of a cordon serve that belong to your key, or with an "
		"administrator's key all of them: whether code runs, the language, the age, the "
		"CPU "
		"time, the highest use of memory and the number of processes. Those that used most "
		"CPU time come first. A dash is what the server does not know, because the session "
		"is parked or busy changing.\n\n"
		"On a terminal the list is shown again each second; q, ^C or ^D leave. Otherwise "
		"it "
		"is printed once. To be listed is no use of a session, and does not keep it from "
		"being parked.\n\n"
		"The server is that of --server, else the environment variable CORDON_SERVER; the "
		"key is CORDON_KEY, which is in no process list.",
	.examples = examples,
};
