/* cli/run.c - `cordon run`: runs code in a fresh sandbox and prints its output and result. */
#include <cordon/cordon.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/ask.h"
#include "cli/base_option.h"
#include "cli/choice.h"
#include "cli/language.h"
#include "cli/outcome.h"
#include "cli/outlet.h"
#include "cli/plots.h"
#include "cli/port_option.h"
#include "cli/run_session.h"
#include "cli/transfer.h"
#include "cli/unshown.h"
#include "cli/verb.h"
#include "cli/verbose.h"
#include "serve/typescript.h"

enum { MAX_CODE = 64 << 20 };

/* The code: -e TEXT, or the first operand's file. */
static int load_code(const struct cli *c, int argc, char **argv, struct buf *ret,
		     struct cordon_error **reterr)
{
	const char *text = cli_value(c, "eval");

	buf_init(ret, MAX_CODE);
	if (text)
		return buf_add_str(ret, text);
	if (argc < 1)
		return err_set(reterr, CORDON_INVALID, "name a file, or give the code with -e");
	return file_load(argv[0], MAX_CODE, ret, reterr);
}

/* Chooses the guest; TypeScript becomes JavaScript here. */
static int choose_guest(const struct cli *c, const char *path, const struct cordon_policy *policy,
			struct buf *code, const char **ret, struct cordon_error **reterr)
{
	struct language l = { .guest = cli_value(c, "guest") };
	bool has_name = !cli_value(c, "eval") && path && !str_eq(path, "-");

	bool is_named = l.guest;
	int r = language_of(has_name ? path : NULL, buf_text(code), code->len, &l, reterr);
	if (r == 0 && !is_named && str_eq(l.guest, "sh"))
		r = language_check_options(buf_text(code), code->len, reterr);
	if (r < 0)
		return r;
	*ret = l.guest;
	return l.is_typescript ? typescript_strip(policy, code, reterr) : 0;
}

static int report(const struct cli *c, struct cordon_result *r, struct outlet *out)
{
	const char *text = cli_has(c, "json") ? cordon_result_json(r) : cordon_result_value_text(r);
	int status = cordon_result_exit_status(r);

	fflush(stdout);
	outlet_end(out, text);
	if (out->failed && status == 0) {
		cli_error(c, "cannot write to standard output: %s", strerror(out->failed));
		return cordon_code_exit_status(CORDON_OS);
	}
	int lost = outcome_print_losses(c, r);
	if (cli_has(c, "json"))
		return status ? status : lost;
	if (cli_has(c, "validate"))
		outcome_print_warnings(c, r);
	int cut = outcome_print_cuts(c, r);
	if (!cordon_result_success(r))
		outcome_print_failure(c, r);
	if (!cli_has(c, "quiet"))
		outcome_print_denials(c, r);
	return status ? status : lost ? lost : cut;
}

/* One line of JSON, because the wire has one message per line. */
static int load_context(const struct cli *c, char **ret, struct cordon_error **reterr)
{
	const char *text = cli_value(c, "context");
	cleanup_json json_t *j = NULL;

	if (!text)
		return 0;
	int r = json_parse(text, strlen(text), 0, &j, reterr);
	if (r < 0)
		return err_wrap(reterr, r, "--context");
	if (!json_is_object(j))
		return err_set(reterr, CORDON_INVALID, "--context takes a JSON object");
	*ret = json_text(j, NULL);
	return *ret ? 0 : err_errno(reterr, ENOMEM, "--context");
}

/* The caller can fix code that is too large or a missing interpreter, so these are usage errors. A
 * machine out of resources is not. */
static int fail(const struct cli *c, const struct cordon_error *e)
{
	enum cordon_code code = cordon_error_code(e);
	bool is_callers =
		(code == CORDON_LIMIT && cordon_error_errno(e) == 0) || code == CORDON_NOT_FOUND;

	return is_callers ? choice_fail(c, e) : cli_fail(c, e);
}

/* A file that could not be copied out does not undo what the code did. */
static int conclude(const struct cli *c, struct cordon_result *result, struct outlet *out,
		    const struct cordon_error *e)
{
	int status = 0, failed = 0;

	if (result)
		status = report(c, result, out);
	else
		outlet_end(out, NULL);
	if (e)
		failed = fail(c, e);
	return status ? status : failed;
}

static void watch(const struct cli *c, struct verbose *v, struct cordon_session_options *o)
{
	if (!cli_has(c, "verbose"))
		return;
	o->log = verbose_print;
	o->log_arg = v;
}

/* bash reads a script as it runs: anything may follow an exit, and an alias may be half a command.
 * So a script is not checked first. */
static bool is_shell_file(const struct cli *c, const char *guest)
{
	return !cli_value(c, "eval") && !cli_has(c, "validate") &&
	       (str_eq(guest, "sh") || str_eq(guest, "pod"));
}

/* Plots are shown, or it is said how to see them. */
static void show_plots(const struct cli *c, struct cordon_result *r)
{
	struct unshown u = { 0 };
	cleanup_plots struct plots plots = { .c = c,
					     .are_saved = cli_value(c, "out-dir"),
					     .names_on_stderr = true };

	if (r && cli_has(c, "show")) {
		plots_show_result(&plots, r);
		return;
	}
	if (!r || cli_has(c, "json") || cli_has(c, "quiet") || cli_value(c, "out-dir"))
		return;
	unshown_count_result(&u, r);
	unshown_tell(&u, c, "--show shows plots, --out-dir DIR saves them");
}

/* Where a question or a line of ours could come in between, no line is drawn. */
static struct progress *waiting_of(const struct cli *c, struct outlet *out)
{
	bool may_draw = !cli_has(c, "verbose") && !cli_has(c, "quiet") && !cli_has(c, "tools") &&
			!run_session_asks(out->policy);

	return may_draw ? &out->waiting : NULL;
}

static int run_once(const struct cordon_session_options *session, struct run_work *w,
		    struct cordon_error **reterr)
{
	if (w->waiting)
		progress_spin(w->waiting, "running");
	int r = cordon_run(session, w->options, &w->result, reterr);
	if (w->waiting)
		progress_end(w->waiting);
	return r;
}

/* *ret is the result, also of code that failed; NULL: there is none. */
static int run_code(const struct cli *c, int argc, char **argv, const struct cordon_policy *policy,
		    const char *guest, const struct buf *code, struct cordon_result **ret)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_tools *tools = NULL;
	cleanup_free char *context = NULL;
	bool json = cli_has(c, "json");
	cleanup_outlet struct outlet out = { 0 };
	cleanup_close int in = isatty(0) || (argc > 0 && str_eq(argv[0], "-")) ? -1 : dup(0);

	outlet_begin(&out, policy);
	if (load_context(c, &context, &e) < 0 || run_session_tools(c, &tools, &e) < 0) {
		cordon_tools_unref(tools);
		return choice_fail(c, e);
	}
	struct cordon_session_options session = { .guest = guest,
						  .policy = policy,
						  .tools = tools,
						  .directory = cli_has(c, "project") ? "/workspace"
										     : NULL,
						  .workspace = cli_value(c, "workspace") };
	struct verbose verbose = { .as_json = json };
	watch(c, &verbose, &session);
	struct cordon_execute_options options = {
		.code = buf_text(code),
		.code_len = code->len,
		.context_json = context,
		.stdin_fd = in > 0 ? in : 0,
		.output = json ? NULL : outlet_pass,
		.output_arg = &out,
		.discard_output = !json,
		.show_values = !json,
		.skip_validation = is_shell_file(c, session.guest),
		.args = (const char *const *)(argv + (cli_value(c, "eval") || argc == 0 ? 0 : 1)),
	};
	struct run_work w = { .options = &options, .waiting = waiting_of(c, &out) };
	int r = run_session_is_needed(c, policy) ? run_session_work(c, &session, &w, &e)
						 : run_once(&session, &w, &e);
	if (r == 0 && cli_value(c, "out-dir"))
		r = transfer_outputs(c, w.result, cli_value(c, "out-dir"), &e);
	int status = conclude(c, w.result, &out, r < 0 ? e : NULL);
	show_plots(c, w.result);
	*ret = w.result;
	cordon_tools_unref(tools);
	return status;
}

/* A notebook has no arguments: what follows it are options too. */
static int take_options(struct cli *c, int argc, char **argv)
{
	int more = 0;

	if (cli_parse(c, argc - 1, argv + 1, &more) != 0)
		return 2;
	return more > 0 ? cli_usage(c, "a notebook takes no arguments: '%s'", argv[1]) : 0;
}

static int run_cells(struct cli *c, const char *path, const struct cordon_policy *policy)
{
	static const char *const others[] = { "json", "validate", "context", "out-dir", "show" };
	cleanup_error struct cordon_error *e = NULL;
	cleanup_notebook struct notebook n = { 0 };
	struct cordon_tools *tools = NULL;
	struct run_work w = { .notebook = &n };
	struct verbose verbose = { 0 };

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (cli_has(c, others[i]))
			return cli_usage(c, "--%s is not for notebooks", others[i]);
	struct language named = { 0 };
	(void)language_named(cli_value(c, "guest"), &named);
	const char *target = run_session_target(c);
	if (target && notebook_check_target(target, &e) < 0)
		return choice_fail(c, e);
	if (notebook_load(path, named.guest, &n, &e) < 0 || run_session_tools(c, &tools, &e) < 0)
		return choice_fail(c, e);
	struct cordon_session_options session = { .guest = n.guest,
						  .policy = policy,
						  .tools = tools,
						  .directory = cli_has(c, "project") ? "/workspace"
										     : NULL,
						  .workspace = cli_value(c, "workspace") };
	if (n.languages[0] && n.languages[1])
		session.languages = n.languages;
	watch(c, &verbose, &session);
	int r = run_session_work(c, &session, &w, &e);
	cordon_tools_unref(tools);
	int failed = r < 0 ? fail(c, e) : 0;
	return w.status ? w.status : failed;
}

/* A program that ends with a status has said why itself, on the terminal. */
static int conclude_terminal(const struct cli *c, const struct run_work *w,
			     const struct cordon_error *e)
{
	const char *kind = w->result ? cordon_result_error_kind(w->result) : NULL;

	if (w->signal)
		return 128 + w->signal;
	int status = w->result ? cordon_result_exit_status(w->result) : 0;
	if (kind && !str_eq(kind, "exception") && status != 128 + SIGINT)
		outcome_print_failure(c, w->result);
	int failed = e ? fail(c, e) : 0;
	return status ? status : failed;
}

static int start_terminal(const struct cli *c, struct interactive *what,
			  const struct cordon_policy *policy)
{
	cleanup_error struct cordon_error *e = NULL;
	const char *const languages[] = { "sh", what->guest, NULL };
	/* Packages are those of the session's own language. */
	const char *guest = cli_has(c, "with") ? what->guest : "sh";
	struct cordon_session_options session = { .guest = guest,
						  .languages = languages,
						  .policy = policy,
						  .directory = cli_has(c, "project") ? "/workspace"
										     : NULL,
						  .workspace = cli_value(c, "workspace") };
	struct verbose verbose = { 0 };
	struct run_work w = { .interactive = what };

	watch(c, &verbose, &session);
	int r = run_session_work(c, &session, &w, &e);
	int status = conclude_terminal(c, &w, r < 0 ? e : NULL);
	cordon_result_free(w.result);
	return status;
}

/* The program's own prompt, or code that may ask the user. */
static int run_on_terminal(const struct cli *c, int argc, char **argv,
			   const struct cordon_policy *policy)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_buf struct buf code = { 0 };
	const char *file = !cli_value(c, "eval") && argc > 0 ? argv[0] : NULL;
	const char *slash = file ? strrchr(file, '/') : NULL, *name = slash ? slash + 1 : file;
	struct interactive what = { .policy = policy,
				    .guest = cli_value(c, "guest") ? cli_value(c, "guest") : "sh",
				    .name = name ? name : "code",
				    .args = (const char *const *)(argv + (file ? 1 : 0)),
				    .timeout_ms = cli_value(c, "timeout") ? 0 : UINT64_MAX };
	int status = interactive_refuse(c, file);

	if (status)
		return status;
	if (!file && !cli_value(c, "eval"))
		return start_terminal(c, &what, policy);
	what.code = &code;
	if (load_code(c, argc, argv, &code, &e) < 0)
		return choice_fail(c, e);
	if (choose_guest(c, file, policy, &code, &what.guest, &e) < 0)
		return fail(c, e);
	if (str_ends(what.name, "ts")) /* its types are gone */
		what.name = "code.js";
	return start_terminal(c, &what, policy);
}

static int make_policy(const struct cli *c, struct cordon_policy **ret,
		       struct cordon_error **reterr)
{
	const char *audit = cli_value(c, "audit");
	cleanup_free char *set = audit ? str_printf("audit=%s", audit) : NULL;
	int r = cli_has(c, "json") ? choice_policy(c, NULL, ret, reterr)
				   : choice_policy_streamed(c, ret, reterr);

	if (r == 0)
		r = base_venv(c, *ret, reterr);
	if (r == 0 && set)
		r = cordon_policy_set(*ret, set, reterr);
	if (r == 0 && cli_has(c, "validate"))
		r = cordon_policy_set(*ret, "validate=true", reterr);
	return r < 0 ? r : port_option_allow(c, *ret, reterr);
}

/* Once, or with --ask again for as long as the user allows more. */
static int run_asking(const struct cli *c, int argc, char **argv, struct cordon_policy *policy)
{
	const char *file = cli_value(c, "eval") || str_eq(argv[0], "-") ? NULL : argv[0];
	cleanup_error struct cordon_error *e = NULL;
	cleanup_buf struct buf code = { 0 };
	cleanup_ask struct ask ask = { 0 };
	struct cordon_result *result = NULL;
	const char *guest = NULL;

	if (load_code(c, argc, argv, &code, &e) < 0)
		return choice_fail(c, e);
	/* What is run is what was hashed: the file is not read again. */
	if (cli_has(c, "ask") && ask_init(&ask, c, file, &code, policy, &e) < 0)
		return choice_fail(c, e);
	int r = choose_guest(c, argc > 0 ? argv[0] : NULL, policy, &code, &guest, &e);
	if (r < 0) /* TypeScript that does not parse has failed, like other code */
		return guest && cordon_error_code(e) == CORDON_INVALID ? (cli_fail(c, e), 1)
								       : fail(c, e);
	int status = run_code(c, argc, argv, policy, guest, &code, &result);
	while (cli_has(c, "ask") && result && ask_about(&ask, result, policy)) {
		cordon_result_free(result);
		result = NULL;
		status = run_code(c, argc, argv, policy, guest, &code, &result);
	}
	cordon_result_free(result);
	return status;
}

static int run(struct cli *c, int argc, char **argv)
{
	cleanup_choice struct cordon_policy *policy = NULL;
	cleanup_error struct cordon_error *e = NULL;

	bool is_notebook = !cli_value(c, "eval") && argc > 0 && notebook_is(argv[0]);
	int wrong = is_notebook ? take_options(c, argc, argv) : 0;
	if (wrong == 0)
		wrong = ask_refuse(c, is_notebook);
	if (wrong)
		return wrong;
	if (make_policy(c, &policy, &e) < 0)
		return choice_fail(c, e);
	if (cli_has(c, "tty"))
		return run_on_terminal(c, argc, argv, policy);
	if (is_notebook)
		return run_cells(c, argv[0], policy);
	if (cli_has(c, "output") || cli_has(c, "keep-going"))
		return cli_usage(c, "--output and --keep-going are for notebooks and documents");
	if (cli_has(c, "show") && cli_has(c, "json"))
		return cli_usage(c, "--show and --json exclude each other");
	return run_asking(c, argc, argv, policy);
}

static const struct cli_option options[] = {
	CHOICE_OPTIONS,
	BASE_OPTIONS,
	{ "eval", 'e', "CODE", "the code itself instead of a file", false },
	{ "guest", 'g', "GUEST",
	  "python, r, node, sh or pod; default: by the file's #! line, then by its name", false },
	{ "tty", 'i', NULL, "as -it: on a terminal, connected to yours; without code, a prompt",
	  false },
	{ "context", 'c', "JSON", "a JSON object whose members become variables", false },
	{ "file", 'f', "HOST:GUEST", "copy a file in before the code runs", true },
	{ "out", 'o', "GUEST:HOST",
	  "copy a file out afterwards; -o FILE with a notebook is --output", true },
	{ "output", 0, "FILE", "write the notebook with its outputs, or the document as Markdown",
	  false },
	{ "keep-going", 0, NULL, "run a notebook's other cells after one has failed", false },
	{ "out-dir", 0, "DIR", "save plots and other rich outputs here", false },
	{ "show", 0, NULL, "show plots in the terminal if it can, else save and name them", false },
	{ "tools", 0, "FILE", "host commands that the code may call (docs/tools.md)", false },
	PORT_OPTION,
	{ "approve", 0, "HOW", "calls that need approval: ask, allow or deny", false },
	{ "ask", 0, NULL, "after a denial, ask whether to allow it and run again", false },
	{ "audit", 0, "FILE", "append to this audit log", false },
	{ "workspace", 'w', "NAME", "keep the files of the session under this name", false },
	{ "project", 0, "DIR", "work on a copy of DIR in /workspace and show what changed", false },
	{ "apply", 0, NULL, "with --project: write all changes back", false },
	{ "apply-path", 0, "PATH", "with --project: write back what changed at PATH", true },
	{ "validate", 0, NULL,
	  "check the whole syntax first, and name calls that may be restricted", false },
	{ "verbose", 'v', NULL, "print each step on standard error; with --json as lines of JSON",
	  false },
	{ "quiet", 'q', NULL, "print only the code's output and errors: no denials, no hints",
	  false },
	{ "json", 'j', NULL, "print the whole result as one line of JSON", false },
	{ 0 },
};

static const struct cli_example examples[] = {
	{ "cordon run -e 'sum(range(10))'", "the value of the last expression is printed" },
	{ "cordon run --level strict --json script.py",
	  "a stricter sandbox, a machine-readable result" },
	{ "cordon run --guest sh -e 'ls /' --timeout 5s", "a shell script" },
	{ "cordon run --expose 8000:9000 --timeout none server.py",
	  "a server, which the host reaches at 127.0.0.1:9000" },
	{ "cordon run -it -g python", "a Python prompt; -it ask.py runs a program that asks" },
	{ "cordon run --level strict --ask script.py", "strictly, but asks about what was denied" },
	{ "cordon run analysis.ipynb -o done.ipynb", "a notebook, and where to write its outputs" },
	{ 0 },
};

const struct verb verb_run = {
	.name = "run",
	.summary = "run code in a sandbox",
	.usage = "[OPTION...] FILE [ARG...] | -e CODE [ARG...] | -it",
	.options = options,
	.run = run,
	.about =
		"Runs the code in a fresh sandbox, streams what it prints, and prints the "
		"value of its last expression. Standard input is passed on if it is not a "
		"terminal.\n\n"
		"The language comes from --guest, else from FILE's #! line, else from its "
		"name: .py, .R, .r, .js, .mjs, .cjs, .ts, .mts, .cts, .sh or .bash. TypeScript "
		"needs Node 22.13 or later, which can strip types. If FILE is -, the code "
		"comes from standard input. Code from - or -e is Python unless --guest or a #! "
		"line says otherwise. Write -- before a FILE whose name begins with a dash.\n\n"
		"A notebook (.ipynb, nbformat 4) or a document (.Rmd, .qmd) runs cell by cell in "
		"one session, in the language that it names, and stops at the first cell that "
		"fails, unless the cell has the tag raises-exception (error=TRUE in a document). "
		"The timeout is for each cell. Of a chunk's options, eval, error, include and echo "
		"are followed; inline code does not run.\n\n"
		"With --expose the address of each port is printed on standard error before the "
		"code runs. Every user of this machine can connect to a port of 127.0.0.1; the "
		"Unix socket is yours alone (docs/expose.md).\n\n"
		"With -it the code runs on a pseudo-terminal of the sandbox that is connected to "
		"yours: input(), readline() and read ask you, and programs such as less and top "
		"work. Without FILE and -e it is the prompt of --guest, or bash. There is no "
		"timeout unless --timeout names one. Escape sequences reach your terminal. "
		"The policy's pty must be on; strict has it off.\n\n"
		"With --ask, what a change of the policy would have allowed is shown after the "
		"run, with what the change gives away, and you are asked about each denial: once "
		"runs the code again from its start; for this file also keeps the answer for the "
		"next run with --ask; never keeps that you do not want to be asked; no, which is "
		"the default, is for this run only. Answers are kept in "
		"$XDG_CONFIG_HOME/cordon/asked or ~/.config/cordon/asked and count for this path "
		"and this content only. Delete the file there to forget them. Standard input and "
		"error must be a terminal.\n\n"
		"On a terminal, code that prints nothing for a second gets a line on standard "
		"error with the time that it has taken, which is erased before anything else is "
		"printed. --quiet, --verbose and TERM=dumb switch it off.\n\n"
		"With --show, plots that are PNG images appear in terminals that say in their "
		"environment that they can show them: kitty and Ghostty, iTerm2, WezTerm and "
		"mintty, not inside tmux or screen. Elsewhere they are saved in a new directory "
		"of TMPDIR, or in that of --out-dir, and standard error names the files.\n\n"
		"Output is passed on as it comes and is not cut, unless a policy file or --set "
		"names stdout_bytes, stderr_bytes or output_lines. With --json the result "
		"keeps as much as the policy says, and its field truncated says whether "
		"something was cut.\n\n"
		"Exit status, if not the code's own:\n"
		"- 0: success\n"
		"- 1: the code failed\n"
		"- 2: wrong usage or a bad policy\n"
		"- 124: timeout\n"
		"- 125: Cordon failed, or lost output, audit events or the saved workspace\n"
		"- 126: denied by policy\n"
		"- 137: killed for memory or CPU time",
	.max_operands = -1,
	.options_first = true,
	.examples = examples,
};
