/* cli/policy.c - `cordon policy`: shows, checks, explains and compares policies. */
#include <cordon/cordon.h>

#include "base/str.h"
#include "cli/choice.h"
#include "cli/profile_option.h"
#include "cli/suggest.h"
#include "cli/verb.h"

static int print(const struct cli *c, char *text, bool newline)
{
	if (!text) {
		cli_error(c, "out of memory");
		return cordon_code_exit_status(CORDON_NOMEM);
	}
	fputs(text, stdout);
	if (newline)
		fputc('\n', stdout);
	free(text);
	return 0;
}

static int diff(const struct cli *c, const char *first, const char *second)
{
	cleanup_choice struct cordon_policy *a = NULL, *b = NULL;
	cleanup_error struct cordon_error *e = NULL;

	if (choice_policy(c, first, &a, &e) < 0 || choice_policy(c, second, &b, &e) < 0)
		return choice_fail(c, e);
	char *text = cordon_policy_diff(a, b);
	bool differ = text && text[0];
	int status = print(c, text, false);
	return status ? status : differ;
}

/* The words that take one policy. */
static int tell(const struct cli *c, const char *what, const char *base)
{
	cleanup_choice struct cordon_policy *p = NULL;
	cleanup_error struct cordon_error *e = NULL;
	bool is_check = str_eq(what, "check");

	if (is_check && !base && !cli_has(c, "policy") && !cli_has(c, "profile"))
		return cli_usage(c, "check needs a policy file or --profile");
	if (choice_policy(c, base, &p, &e) < 0)
		return choice_fail(c, e);
	if (str_eq(what, "show"))
		return print(c, cordon_policy_json(p), true);
	if (is_check && cli_has(c, "quiet"))
		return 0;
	return print(c, cordon_policy_explain(p), false);
}

static int run(struct cli *c, int argc, char **argv)
{
	const char *what = argv[0];

	if (str_eq(what, "diff"))
		return argc == 3 ? diff(c, argv[1], argv[2])
				 : cli_usage(c, "diff needs two policies: files or levels");
	if (str_eq(what, "profiles"))
		return argc == 1 ? profile_print_all(c) : cli_usage(c, "profiles takes no policy");
	if (str_eq(what, "suggest"))
		return argc > 1 ? suggest_run(c, argv + 1)
				: cli_usage(c, "suggest needs results: files, or - for standard "
					       "input");
	if (argc > 2)
		return cli_usage(c, "%s takes one policy, a file or a level", what);
	return tell(c, what, argv[1]);
}

static const struct cli_option options[] = {
	CHOICE_OPTIONS,
	{ "quiet", 'q', NULL, "check: print nothing if the policy is valid", false },
	{ "json", 'j', NULL, "profiles, suggest: print JSON", false },
	{ "output", 'o', "FILE", "suggest: write the changed policy to a file", false },
	{ "force", 'f', NULL, "suggest: replace that file", false },
	{ 0 },
};

static const char *const words[] = {
	"show", "check", "explain", "diff", "profiles", "suggest", NULL
};

static const struct cli_example examples[] = {
	{ "cordon policy show --level strict",
	  "print a level as JSON, to start a policy file from" },
	{ "cordon policy check my.json", "check a file, and explain it" },
	{ "cordon policy explain --set network.allow=api.example.org", "a policy in sentences" },
	{ "cordon policy diff standard my.json", "what my.json changes, and whether it is looser" },
	{ "cordon policy profiles", "policies for common work, and your own" },
	{ "cordon policy explain --profile web-reader", "what a profile permits" },
	{ "cordon policy suggest --level strict result.json",
	  "what to change, so that what the result's denials name is allowed" },
	{ 0 },
};

const struct verb verb_policy = {
	.name = "policy",
	.summary = "show, check, explain, compare or extend policies",
	.usage = "show|check|explain|diff|profiles|suggest [OPTION...] [POLICY [POLICY]|RESULT...]",
	.options = options,
	.run = run,
	.about = "A POLICY is a JSON file, '-' for standard input, or the name of a level. The "
		 "default is the level standard.\n\n"
		 "- show prints the whole policy as JSON, without the values of secrets\n"
		 "- check refuses unknown fields, values out of range and contradictions\n"
		 "- explain prints the policy in sentences; check does too\n"
		 "- diff prints a line for each field that differs\n"
		 "- profiles lists the policies that --profile takes\n"
		 "- suggest reads results (cordon run --json) and prints the smallest change that "
		 "allows what was denied, and what it gives away; the options name the policy that "
		 "the code ran with\n\n"
		 "Own profiles are policy files in $XDG_CONFIG_HOME/cordon/profiles or "
		 "~/.config/cordon/profiles: NAME.json is --profile NAME. The file and the folder "
		 "must belong to you, and nobody else may be able to write to them. An own profile "
		 "comes before one of the program with the same name.\n\n"
		 "Exit status: check has 2 for a bad policy; diff has 0 without differences, 1 "
		 "with.",
	.words = words,
	.min_operands = 1,
	.max_operands = -1,
	.examples = examples,
};
