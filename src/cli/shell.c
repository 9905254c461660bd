/* cli/shell.c - `cordon shell`: an interactive session. ^C interrupts the execution, a second one
 * cancels it; the session stays. ^D ends it. */
#include <cordon/cordon.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "cli/approver.h"
#include "cli/base_option.h"
#include "cli/choice.h"
#include "cli/language.h"
#include "cli/outcome.h"
#include "cli/shell_state.h"
#include "cli/verb.h"

enum { RESULT_MAX = 64 << 20, DIRECTORY_SHOWN = 40, PROMPT_MAX = 16384 };

static void show(int stream, const char *bytes, size_t len, void *arg)
{
	struct shell *sh = arg;

	if (len > 0)
		sh->is_midline = bytes[len - 1] != '\n';
	(void)file_write_all(stream, bytes, len);
}

/* Ends a line that the code has left open, so that it stays visible. */
static void end_line(struct shell *sh)
{
	if (sh->is_midline)
		(void)file_write_all(1, "\n", 1);
	sh->is_midline = false;
}

void shell_tell_restarted(const struct shell *sh, const char *why)
{
	cli_error(sh->c, "this is a new session: variables are gone, files are kept%s%s%s",
		  why ? " (" : "", why ? why : "", why ? ")" : "");
}

/* Turns ^C into an interrupt, and a second one into a cancel, which also ends code that goes on
 * after an interrupt. All other threads block SIGINT. */
static void *watch_interrupts(void *arg)
{
	struct shell *sh = arg;
	int signo;

	while (sigwait(&sh->interrupts, &signo) == 0 && !sh->is_over) {
		if (sh->was_asked)
			(void)cordon_session_cancel(sh->session, NULL);
		else
			(void)cordon_session_interrupt(sh->session, NULL);
		sh->was_asked = true;
	}
	return NULL;
}

static void show_failure(const struct shell *sh, const struct cordon_result *r)
{
	const char *trace = cordon_result_traceback(r), *kind = cordon_result_error_kind(r);
	bool has_trace = trace && trace[0];

	if (has_trace)
		fprintf(stderr, "%s%s", trace, str_ends(trace, "\n") ? "" : "\n");
	/* After a timeout or a cancel the trace says where the code was, not why it ended. */
	if (str_eq(kind, "timeout") || str_eq(kind, "cancelled") ||
	    (!has_trace && !str_starts(cordon_result_error(r), "exited with")))
		cli_error(sh->c, "%s: %s", kind, cordon_result_error(r));
}

/* Prints what the result has besides the streams. */
static void report(struct shell *sh, struct cordon_result *r)
{
	const char *text = cordon_result_value_text(r);
	const char *whole = cordon_result_json(r);
	cleanup_json json_t *j = NULL;

	end_line(sh);
	if (cordon_result_success(r) && text)
		puts(text);
	else if (!cordon_result_success(r))
		show_failure(sh, r);
	outcome_print_denials(sh->c, r);
	if (!whole || json_parse(whole, strlen(whole), RESULT_MAX, &j, NULL) < 0)
		return;
	plots_show(&sh->plots, json_object_get(j, "outputs"), text != NULL);
	if (json_is_true(json_object_get(j, "restarted")))
		shell_tell_restarted(sh, json_string_value(json_object_get(j, "restart_reason")));
}

/* A line that was typed while code runs: it has been shown, with its newline. */
static ssize_t take_typed(int fd, void *bytes, size_t size, void *arg)
{
	struct shell *sh = arg;
	ssize_t n = read(fd, bytes, size);

	if (n > 0 && ((const char *)bytes)[n - 1] == '\n')
		sh->is_midline = false;
	return n;
}

static void give_back(const char *bytes, size_t len, void *arg)
{
	struct shell *sh = arg;

	lineedit_give_back(sh->editor, bytes, len);
}

/* On a terminal, code can ask the user. */
static void ask_user(struct shell *sh, struct cordon_execute_options *o)
{
	if (!lineedit_is_terminal(sh->editor) || str_eq(sh->guest, "pod"))
		return;
	if (sh->terminal_fd <= 0)
		sh->terminal_fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
	if (sh->terminal_fd <= 0)
		return;
	o->stdin_fd = sh->terminal_fd;
	o->stdin_read = take_typed;
	o->stdin_unread = give_back;
	o->stdin_arg = sh;
}

static void execute(struct shell *sh, const char *code)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_execute_options o = { .code = code,
					    .output = show,
					    .output_arg = sh,
					    .discard_output = true,
					    .show_values = true };
	struct cordon_result *r = NULL;

	ask_user(sh, &o);
	sh->is_midline = false;
	sh->was_asked = false;
	if (cordon_session_execute(sh->session, &o, &r, &e) < 0) {
		cli_error(sh->c, "%s", cordon_error_message(e));
		return;
	}
	report(sh, r);
	fflush(stdout);
	cordon_result_free(r);
}

/* ---- the prompt */

json_t *shell_inspect(struct shell *sh, enum cordon_question question, const char *text, size_t len)
{
	struct cordon_inspect_options o = { .question = question,
					    .code = text,
					    .code_len = len,
					    .output = show,
					    .output_arg = sh };
	cleanup_free char *json = NULL;
	json_t *j = NULL;

	if (cordon_session_inspect(sh->session, &o, &json, NULL) < 0 ||
	    json_parse(json, strlen(json), 0, &j, NULL) < 0)
		return NULL;
	if (json_is_true(json_object_get(j, "restarted")))
		shell_tell_restarted(sh, NULL);
	return j;
}

/* The guest's own parser decides. If it cannot, the code runs, and says why. */
static bool is_complete(const char *text, size_t len, void *arg)
{
	struct shell *sh = arg;

	if (shell_command_is(text) || text[strspn(text, " \t\n")] == '\0' ||
	    shell_command_is_exit(sh->guest, text, &(int){ 0 }))
		return true;
	cleanup_json json_t *j = shell_inspect(sh, CORDON_IS_COMPLETE, text, len);
	return !str_eq(json_string_value(json_object_get(j, "status")), "incomplete");
}

static json_t *describe(const struct shell *sh)
{
	cleanup_free char *text = cordon_session_describe(sh->session);
	json_t *j = NULL;

	return text && json_parse(text, strlen(text), 0, &j, NULL) == 0 ? j : NULL;
}

char *shell_directory(const struct shell *sh)
{
	cleanup_json json_t *j = describe(sh);
	const char *at = json_string_value(json_object_get(j, "directory"));

	return str_dup(at ? at : "/home/user");
}

/* "python ~/data> " */
static char *make_prompt(const struct shell *sh)
{
	cleanup_free char *at = shell_directory(sh);
	cleanup_buf struct buf b = { 0 };
	const char *home = "/home/user", *shown = at ? at : "";
	bool is_home = str_starts(shown, home) && strchr("/", shown[strlen(home)]);

	buf_init(&b, PROMPT_MAX);
	if (is_home)
		shown += strlen(home);
	(void)buf_printf(&b, "%s ", sh->guest);
	const char *name = strrchr(shown, '/');
	if (strlen(shown) > DIRECTORY_SHOWN && name) {
		(void)buf_add_str(&b, "...");
		shown = name;
	} else if (is_home) {
		(void)buf_add_char(&b, '~');
	}
	(void)buf_add_printable(&b, shown);
	(void)buf_add_str(&b, "> ");
	return buf_take(&b);
}

static void greet(const struct shell *sh)
{
	static const char *const names[][2] = {
		{ "python", "Python" }, { "r", "R" },     { "node", "Node" },
		{ "sh", "bash" },       { "pod", "Pod" },
	};
	cleanup_json json_t *j = describe(sh);
	const char *version = json_string_value(json_object_get(j, "language")), *name = sh->guest;
	const char *level =
		json_string_value(json_object_get(json_object_get(j, "policy"), "level"));
	cleanup_buf struct buf b = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_eq(names[i][0], sh->guest))
			name = names[i][1];
	buf_init(&b, 4096);
	(void)buf_add_printable(&b, version ? version : "");
	printf("%s %s in Cordon %s, level %s. :help for help, ^D to leave.\n", name, buf_text(&b),
	       cordon_version(), level ? level : "custom");
}

static void take(struct shell *sh, const char *text)
{
	bool is_shell = str_eq(sh->guest, "sh") || str_eq(sh->guest, "pod");

	if (text[strspn(text, " \t\n")] == '\0' || shell_command_run(sh, text))
		return;
	sh->is_left = shell_command_is_exit(sh->guest, text, &sh->status);
	if (!sh->is_left || is_shell) /* a shell's own exit runs its traps */
		execute(sh, text);
}

static void loop(struct shell *sh)
{
	while (!sh->is_left) {
		cleanup_free char *text = NULL, *prompt = make_prompt(sh);
		enum lineedit_end end = lineedit_read(sh->editor, prompt ? prompt : "> ", &text);

		if (end == LINEEDIT_DROPPED) /* ^C drops all lines */
			continue;
		if (end != LINEEDIT_LINE)
			break;
		lineedit_release(sh->editor);
		take(sh, text);
	}
}

static int converse(struct shell *sh)
{
	struct lineedit_options o = { .name = sh->guest,
				      .is_complete = is_complete,
				      .complete = shell_complete_at,
				      .arg = sh,
				      .on = cli_style(sh->c, STYLE_GREEN),
				      .off = cli_style(sh->c, STYLE_PLAIN) };
	pthread_t thread;

	sh->editor = lineedit_new(&o);
	if (!sh->editor)
		return ENOMEM;
	if (lineedit_is_terminal(sh->editor))
		greet(sh);
	int r = pthread_create(&thread, NULL, watch_interrupts, sh);
	if (r == 0) {
		loop(sh);
		sh->is_over = true;
		pthread_kill(thread, SIGINT);
		pthread_join(thread, NULL);
	}
	lineedit_free(sh->editor);
	return r;
}

static int run(struct cli *c, int argc, char **argv)
{
	cleanup_choice struct cordon_policy *policy = NULL;
	cleanup_error struct cordon_error *e = NULL;
	struct approver approver = { .mode = APPROVAL_ASK };
	struct shell sh = { .c = c, .plots = { .c = c } };
	struct language language = { 0 };
	cleanup_strlist struct strlist packages = { 0 };
	const char *const *with = NULL;

	(void)language_named(argc > 0 ? argv[0] : "python", &language);
	sh.guest = language.guest;
	if (language.is_typescript)
		return cli_usage(c, "the shell has no TypeScript; there is node");
	if (choice_policy(c, NULL, &policy, &e) < 0 || base_venv(c, policy, &e) < 0 ||
	    base_packages(c, &packages, &with, &e) < 0)
		return choice_fail(c, e);
	sh.policy = policy;
	sigemptyset(&sh.interrupts);
	sigaddset(&sh.interrupts, SIGINT);
	pthread_sigmask(SIG_BLOCK, &sh.interrupts, NULL);
	struct cordon_session_options o = { .guest = sh.guest,
					    .policy = policy,
					    .workspace = cli_value(c, "workspace"),
					    .packages = with,
					    .approval = approval_decide,
					    .approval_arg = &approver };
	if (cordon_session_open(&o, &sh.session, &e) < 0)
		return cli_fail(c, e);
	approver.session = sh.session;
	int failed = converse(&sh);
	if (failed)
		cli_error(c, "%s", strerror(failed));
	plots_done(&sh.plots);
	if (sh.terminal_fd > 0)
		close(sh.terminal_fd);
	if (cordon_session_end(sh.session, &e) < 0)
		return cli_fail(c, e);
	return failed ? cordon_code_exit_status(CORDON_OS) : sh.status;
}

static const struct cli_option options[] = {
	CHOICE_OPTIONS,
	BASE_OPTIONS,
	{ "workspace", 'w', "NAME", "keep the files of the session under this name", false },
	{ "out-dir", 0, "DIR", "save plots and other rich outputs here", false },
	{ 0 },
};

const struct verb verb_shell = {
	.name = "shell",
	.summary = "an interactive session in a sandbox",
	.usage = "[OPTION...] [GUEST]",
	.options = options,
	.run = run,
	.about =
		"GUEST is python (default), r, node, sh or pod. State persists between inputs.\n\n"
		"Enter runs what was typed, or begins another line if the language's own parser, "
		"in "
		"the sandbox, says that the code is not complete. A pasted text waits for Enter. "
		"Tab completes names of the session and files, Up and Down bring back earlier "
		"input, and ^R searches it. History is kept per guest in the user's state "
		"directory. ^C interrupts the running code and keeps the session. A second ^C ends "
		"code that goes on; variables are lost if it does not stop within the policy's "
		"grace_ms. ^D, exit, q() in R "
		"and .exit in Node leave.\n\n"
		"Commands: :help, :files [DIR], :policy, :reset and :quit.\n\n"
		"Plots are shown in terminals that say they can (kitty, Ghostty, iTerm2, WezTerm). "
		"Elsewhere, and with --out-dir for all rich outputs, they are saved and their "
		"files are named.\n\n"
		"On a terminal, input(), readline() and read ask you; ^D is the end of their "
		"input. "
		"What was typed and not read is the next input of the shell. For programs such as "
		"less, which need a terminal of their own, there is cordon run -it. Otherwise, and "
		"in a pod, standard input is at its end.\n\n"
		"If standard input is not a terminal, each complete piece of it runs as it "
		"comes.",
	.max_operands = 1,
};
