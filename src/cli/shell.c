/* cli/shell.c - `cordon shell`: an interactive session. ^C cancels the execution and keeps the
 * session; ^D ends it. */
#include <cordon/cordon.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/approver.h"
#include "cli/choice.h"
#include "cli/lineedit.h"
#include "cli/verb.h"

struct shell {
	const struct cli *c;
	struct cordon_session *session;
	struct lineedit *editor;
	sigset_t interrupts;
	_Atomic bool is_over; /* tells the watcher that the next interrupt ends it */
};

static void show(int stream, const char *bytes, size_t len, void *arg)
{
	(void)arg;
	(void)file_write_all(stream, bytes, len);
}

/* Turns ^C into a cancel. All other threads block SIGINT. */
static void *watch_interrupts(void *arg)
{
	struct shell *sh = arg;
	int signo;

	while (sigwait(&sh->interrupts, &signo) == 0 && !sh->is_over)
		(void)cordon_session_interrupt(sh->session, NULL);
	return NULL;
}

static void execute(struct shell *sh, const char *code)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_execute_options o = { .code = code, .output = show, .discard_output = true };
	struct cordon_result *r = NULL;

	if (cordon_session_execute(sh->session, &o, &r, &e) < 0) {
		cli_error(sh->c, "%s", cordon_error_message(e));
		return;
	}
	const char *trace = cordon_result_traceback(r), *text = cordon_result_value_text(r);
	if (cordon_result_success(r) && text)
		puts(text);
	else if (!cordon_result_success(r) && trace && trace[0])
		fputs(trace, stderr);
	else if (!cordon_result_success(r) && !str_starts(cordon_result_error(r), "exited with"))
		cli_error(sh->c, "%s: %s", cordon_result_error_kind(r), cordon_result_error(r));
	cleanup_free char *denials = cordon_result_denials_text(r);
	if (denials)
		fputs(denials, stderr);
	fflush(stdout);
	cordon_result_free(r);
}

/* How many brackets outside quotes are still open. */
static int open_brackets(const char *code, size_t len)
{
	int depth = 0;
	char quote = 0;

	for (size_t i = 0; i < len; i++) {
		char ch = code[i];

		if (quote) {
			if (ch == '\\' && code[i + 1])
				i++;
			else if (ch == quote)
				quote = 0;
		} else if (ch == '"' || ch == '\'') {
			quote = ch;
		} else if (strchr("([{", ch)) {
			depth++;
		} else if (strchr(")]}", ch)) {
			depth--;
		}
	}
	return depth;
}

/* An open block is read until an empty line. It is open after a colon, a backslash or an open
 * bracket. */
static bool is_open(const char *code)
{
	size_t len = strlen(code);
	int depth = open_brackets(code, len);

	while (len > 0 && (code[len - 1] == ' ' || code[len - 1] == '\n'))
		len--;
	return depth > 0 || (len > 0 && (code[len - 1] == ':' || code[len - 1] == '\\'));
}

static void loop(struct shell *sh, const char *guest)
{
	cleanup_free char *prompt = str_printf("%s> ", guest);
	struct buf code;

	buf_init(&code, 16 << 20);
	for (;;) {
		cleanup_free char *line = NULL;
		enum lineedit_end end =
			lineedit_read(sh->editor, code.len ? "... " : prompt, &line);

		if (end == LINEEDIT_DROPPED) { /* ^C drops the whole block */
			buf_clear(&code);
			continue;
		}
		if (end != LINEEDIT_LINE)
			break;
		bool is_block = code.len > 0;
		if (buf_add_str(&code, line) < 0 || buf_add_char(&code, '\n') < 0)
			buf_clear(&code);
		if (is_open(buf_text(&code)) && !(is_block && line[0] == '\0'))
			continue;
		if (is_block && line[0] != '\0' && (line[0] == ' ' || line[0] == '\t'))
			continue; /* still inside an indented block */
		lineedit_release(sh->editor);
		if (code.len > 1)
			execute(sh, buf_text(&code));
		buf_clear(&code);
	}
	buf_done(&code);
}

static int run(struct cli *c, int argc, char **argv)
{
	cleanup_choice struct cordon_policy *policy = NULL;
	cleanup_error struct cordon_error *e = NULL;
	const char *guest = argc > 0 ? argv[0] : "python";
	struct approver approver = { .mode = APPROVAL_ASK };
	struct shell sh = { .c = c };
	pthread_t thread;

	if (choice_policy(c, NULL, &policy, &e) < 0)
		return choice_fail(c, e);
	sigemptyset(&sh.interrupts);
	sigaddset(&sh.interrupts, SIGINT);
	pthread_sigmask(SIG_BLOCK, &sh.interrupts, NULL);
	struct cordon_session_options o = { .guest = guest,
					    .policy = policy,
					    .workspace = cli_value(c, "workspace"),
					    .approval = approval_decide,
					    .approval_arg = &approver };
	if (cordon_session_open(&o, &sh.session, &e) < 0)
		return cli_fail(c, e);
	approver.session = sh.session;
	sh.editor = lineedit_new(guest);
	if (sh.editor && pthread_create(&thread, NULL, watch_interrupts, &sh) == 0) {
		loop(&sh, guest);
		sh.is_over = true;
		pthread_kill(thread, SIGINT);
		pthread_join(thread, NULL);
	}
	lineedit_free(sh.editor);
	return cordon_session_end(sh.session, &e) < 0 ? cli_fail(c, e) : 0;
}

static const struct cli_option options[] = {
	CHOICE_OPTIONS,
	{ "workspace", 'w', "NAME", "keep the files of the session under this name", false },
	{ 0 },
};

const struct verb verb_shell = {
	.name = "shell",
	.summary = "an interactive session in a sandbox",
	.usage = "[OPTION...] [GUEST]",
	.options = options,
	.run = run,
	.about = "GUEST is python (default), r, node, sh or pod. Each line runs at once, and "
		 "state persists. An open block runs at the next empty line. ^C stops the "
		 "running code and keeps the session, ^D ends it. History is kept per guest in "
		 "the user's state directory.",
	.max_operands = 1,
};
