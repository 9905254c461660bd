/* cli/kernel.c - `cordon kernel install`: a kernel specification with which Jupyter runs its
 * notebooks in a sandbox. The kernel itself is the module cordon.kernel of the Python client. */
#include <cordon/cordon.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/os.h"
#include "base/str.h"
#include "cli/choice.h"
#include "cli/policy_file.h"
#include "cli/verb.h"

enum { NAME_MAX_BYTES = 100, PATH_BYTES = 4096 };

static const struct language_row {
	const char *guest, *title, *jupyter; /* what Jupyter calls it */
} rows[] = {
	{ "python", "Python", "python" },
	{ "r", "R", "R" },
	{ "node", "JavaScript", "javascript" },
	{ "sh", "Bash", "bash" },
};

static const struct language_row *row_of(const char *guest)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (str_eq(rows[i].guest, guest))
			return &rows[i];
	return NULL;
}

/* Jupyter's own rule. A name of dots would be another directory. */
static bool is_name(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
	size_t len = strlen(name);

	return len > 0 && len <= NAME_MAX_BYTES && strspn(name, allowed) == len && name[0] != '.';
}

/* Where Jupyter looks: see its `jupyter --paths`. NULL: there is no home, or no memory. */
static char *kernels_dir(const struct cli *c)
{
	const char *prefix = cli_value(c, "prefix"), *data = getenv("JUPYTER_DATA_DIR");
	const char *share = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

	if (prefix)
		return str_printf("%s/share/jupyter/kernels", prefix);
	if (data && data[0])
		return str_printf("%s/kernels", data);
	if (share && share[0])
		return str_printf("%s/jupyter/kernels", share);
	return home && home[0] ? str_printf("%s/.local/share/jupyter/kernels", home) : NULL;
}

static int make_dirs(const char *path, struct cordon_error **reterr)
{
	cleanup_free char *copy = str_dup(path);

	if (!copy)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	for (char *at = copy + 1;; at++) {
		bool is_last = *at == '\0';

		if (!is_last && *at != '/')
			continue;
		*at = '\0';
		if (mkdir(copy, 0755) != 0 && errno != EEXIST)
			return err_errno(reterr, errno, "mkdir '%s'", copy);
		if (is_last)
			return 0;
		*at = '/';
	}
}

static char *spec_text(const struct cli *c, const struct language_row *row)
{
	const char *python = cli_value(c, "python"), *title = cli_value(c, "title");
	char self[PATH_BYTES];

	if (!os_program_path(self, sizeof(self)))
		return NULL;
	cleanup_free char *shown = title ? str_dup(title) : str_printf("%s (cordon)", row->title);
	cleanup_json json_t *j = json_pack(
		"{s:[s,s,s,s,s,s,s,s,s],s:s?,s:s,s:s,s:{s:s}}", "argv", python ? python : "python3",
		"-m", "cordon.kernel", "-f", "{connection_file}", "--guest", row->guest, "--policy",
		"{resource_dir}/policy.json", "display_name", shown, "language", row->jupyter,
		"interrupt_mode", "message", "env", "CORDON", self);
	cleanup_free char *text = j ? json_text(j, NULL) : NULL;

	return text ? str_printf("%s\n", text) : NULL;
}

static int install(const struct cli *c, const struct language_row *row, const char *name,
		   struct cordon_error **reterr)
{
	cleanup_choice struct cordon_policy *p = NULL;
	cleanup_free char *kernels = kernels_dir(c), *text = spec_text(c, row);
	cleanup_free char *dir = kernels ? str_printf("%s/%s", kernels, name) : NULL;
	cleanup_free char *spec = dir ? str_printf("%s/kernel.json", dir) : NULL;
	cleanup_free char *policy = dir ? str_printf("%s/policy.json", dir) : NULL;
	bool replaces = cli_has(c, "force");

	if (!kernels && !cli_value(c, "prefix"))
		return err_set(reterr, CORDON_NOT_FOUND,
			       "there is no HOME; --prefix says where the kernel goes");
	if (!text || !spec || !policy)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	int r = choice_policy(c, NULL, &p, reterr);
	if (r == 0)
		r = make_dirs(dir, reterr);
	/* Jupyter sees a kernel once kernel.json is there: the policy comes first. */
	if (r == 0)
		r = policy_file_save(p, policy, replaces, reterr);
	if (r == 0)
		r = policy_file_save_text(text, spec, replaces, reterr);
	if (r == 0)
		printf("%s is a kernel in %s; its policy is policy.json beside it\n", name, dir);
	return r;
}

static int run(struct cli *c, int argc, char **argv)
{
	cleanup_error struct cordon_error *e = NULL;
	const char *guest = cli_value(c, "language"), *name = cli_value(c, "name");
	const struct language_row *row = row_of(guest ? guest : "python");
	char fallback[32];

	(void)argc;
	(void)argv;
	if (!row)
		return cli_usage(c, "--language is python, r, node or sh, not '%s'", guest);
	if (cli_has(c, "user") && cli_has(c, "prefix"))
		return cli_usage(c, "--user and --prefix exclude each other");
	snprintf(fallback, sizeof(fallback), "cordon-%s", row->guest);
	if (name && !is_name(name))
		return cli_usage(c, "--name has small letters, digits, '-', '_' and '.'");
	return install(c, row, name ? name : fallback, &e) < 0 ? choice_fail(c, e) : 0;
}

static const struct cli_option options[] = {
	{ "user", 0, NULL, "for this user; so it is without --prefix", false },
	{ "prefix", 0, "DIR", "into DIR/share/jupyter/kernels, as of a virtual environment",
	  false },
	{ "name", 0, "NAME", "of the kernel; default: cordon-LANGUAGE", false },
	{ "title", 0, "TEXT", "what Jupyter shows; default: Python (cordon)", false },
	{ "language", 0, "LANGUAGE", "python, r, node or sh; default: python", false },
	{ "python", 0, "PROGRAM",
	  "the Python that has the modules cordon and zmq; default: python3", false },
	CHOICE_OPTIONS,
	{ "force", 'f', NULL, "replace a kernel of that name", false },
	{ 0 },
};

static const char *const words[] = { "install", NULL };

static const struct cli_example examples[] = {
	{ "cordon kernel install --profile data-science", "Python notebooks, as this user" },
	{ "cordon kernel install --language r --prefix /opt/venv --level strict",
	  "R notebooks, for what is installed in /opt/venv" },
	{ 0 },
};

const struct verb verb_kernel = {
	.name = "kernel",
	.summary = "let Jupyter run its notebooks in a sandbox",
	.usage = "install [OPTION...]",
	.options = options,
	.run = run,
	.about = "Writes kernel.json and policy.json into a directory where Jupyter looks for "
		 "kernels. A notebook with that kernel runs in a sandbox with that policy. A "
		 "change of policy.json holds from the kernel's next start on.\n\n"
		 "The kernel is the module cordon.kernel of the Python client. It needs the module "
		 "zmq (package python3-zmq).",
	.words = words,
	.min_operands = 1,
	.max_operands = 1,
	.examples = examples,
};
