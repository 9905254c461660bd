/* cli/doctor.c - `cordon doctor`: shows what this machine can enforce, and proves it. */
#include <cordon/cordon.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/random.h"
#include "base/str.h"
#include "cli/language.h"
#include "cli/verb.h"

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static void print_layers(const struct cli *c, const json_t *report)
{
	size_t i;
	json_t *l;

	json_array_foreach(json_object_get(report, "layers"), i, l)
	{
		bool is_there = json_is_true(json_object_get(l, "there"));

		printf("  %s%-7s%s %-14s %s\n", cli_style(c, is_there ? STYLE_GREEN : STYLE_RED),
		       is_there ? "there" : "missing", cli_style(c, STYLE_PLAIN),
		       text_of(l, "layer"), text_of(l, "what"));
		if (!is_there)
			printf("          why: %s\n          remedy: %s\n", text_of(l, "why"),
			       text_of(l, "remedy"));
	}
}

/* What the sandbox lacks here. Without namespaces it also says which policy allows that. */
static void print_lacks(const json_t *report)
{
	const json_t *lacks = json_object_get(report, "lacks");
	size_t i;
	json_t *words;

	if (!lacks)
		return;
	if (str_eq(text_of(report, "rung"), "without namespaces"))
		printf("\nCode runs here only under a policy that does without namespaces "
		       "(--set require=landlock,seccomp,rlimits), which lacks:\n");
	else
		printf("\nMissing here\n");
	json_array_foreach(lacks, i, words) printf("  %s\n", json_string_value(words));
}

static void print_guests(const struct cli *c, const json_t *report)
{
	size_t i;
	json_t *g;

	json_array_foreach(json_object_get(report, "guests"), i, g)
	{
		bool is_there = json_is_true(json_object_get(g, "there"));

		printf("  %s%-7s%s %-14s %s\n", cli_style(c, is_there ? STYLE_GREEN : STYLE_YELLOW),
		       is_there ? "there" : "missing", cli_style(c, STYLE_PLAIN),
		       text_of(g, "guest"), text_of(g, is_there ? "version" : "why"));
	}
}

static void print_ladder(const struct cli *c, const json_t *report)
{
	const json_t *groups = json_object_get(report, "cgroups");
	const json_t *places = json_object_get(groups, "places");
	const char *version = text_of(groups, "version");

	printf("%sCordon %s%s on Linux %s (%s), as %s\n", cli_style(c, STYLE_BOLD),
	       text_of(report, "version"), cli_style(c, STYLE_PLAIN), text_of(report, "kernel"),
	       text_of(report, "machine"),
	       str_eq(text_of(report, "user"), "root") ? "root" : "an ordinary user");
	printf("Rung: %s. Landlock ABI %lld.\n\nLayers\n", text_of(report, "rung"),
	       (long long)json_integer_value(json_object_get(report, "landlock_abi")));
	print_layers(c, report);
	if (str_eq(text_of(report, "rung"), "none"))
		printf("\nNothing can run here: %s\n", text_of(report, "why"));
	print_lacks(report);
	printf("\nControl groups: %s\n", version[0] ? version : "none");
	if (version[0])
		printf("  memory  %s\n  pids    %s\n  cpu     %s\n", text_of(places, "memory"),
		       text_of(places, "pids"), text_of(places, "cpu"));
	printf("\nGuests\n");
	print_guests(c, report);
}

static int ladder(const struct cli *c)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_free char *text = NULL;
	cleanup_json json_t *report = NULL;

	if (cordon_doctor(&text, &e) < 0)
		return cli_fail(c, e);
	if (cli_has(c, "json")) {
		puts(text);
		return 0;
	}
	if (json_parse(text, strlen(text), 0, &report, &e) < 0)
		return cli_fail(c, e);
	print_ladder(c, report);
	return 0;
}

static void print_row(const struct cli *c, const json_t *row)
{
	bool is_bad = str_eq(text_of(row, "outcome"), "open") ||
		      str_eq(text_of(row, "outcome"), "broken");
	const char *control = text_of(row, "control");
	size_t i;
	json_t *layer;

	printf("%s%-5s%s %-52s %-18s ", cli_style(c, is_bad ? STYLE_RED : STYLE_GREEN),
	       str_eq(text_of(row, "outcome"), "not applicable") ? "n/a" : text_of(row, "outcome"),
	       cli_style(c, STYLE_PLAIN), text_of(row, "attack"), text_of(row, "said"));
	json_array_foreach(json_object_get(row, "layers"), i, layer)
		printf("%s%s", i ? ", " : "", json_string_value(layer));
	printf("%s%s%s\n", control[0] ? " (outside: " : "", control, control[0] ? ")" : "");
}

static long long number_of(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_object_get(o, key));
}

static void show_progress(const char *name, const char *outcome, void *arg)
{
	(void)arg;
	fprintf(stderr, "\r%-40s %-16s", name, outcome);
}

/* For programs that follow the proof: one line of JSON per attack. */
static void print_progress(const char *name, const char *outcome, void *arg)
{
	(void)arg;
	cleanup_json json_t *j = json_pack("{ss,ss}", "attack", name, "outcome", outcome);
	cleanup_free char *text = j ? json_text(j, NULL) : NULL;
	if (text) {
		puts(text);
		fflush(stdout);
	}
}

static int prove(const struct cli *c)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_free char *text = NULL;
	cleanup_json json_t *report = NULL;
	bool is_watched = c->color_err && !cli_has(c, "json");
	struct language language = { 0 };
	(void)language_named(cli_value(c, "guest"), &language);
	struct cordon_prove_options o = { .only = cli_value(c, "attack"),
					  .guest = language.guest,
					  .allow_host = cli_value(c, "allow-host"),
					  .control = cli_has(c, "control"),
					  .quick = cli_has(c, "quick"),
					  .progress = is_watched ? show_progress : NULL };
	char secret[33];
	size_t i;
	json_t *row;

	if (cli_has(c, "progress"))
		o.progress = print_progress;
	/* Attacks search the sandbox's environment for this variable, so ours must have it. */
	random_hex(secret, 32);
	if (setenv("CORDON_BAIT", secret, 1) != 0 || cordon_prove(&o, &text, &e) < 0)
		return cli_fail(c, e);
	if (is_watched)
		fprintf(stderr, "\r%-60s\r", "");
	if (json_parse(text, strlen(text), 0, &report, &e) < 0)
		return cli_fail(c, e);
	bool is_bad = number_of(report, "open") + number_of(report, "broken") +
			      number_of(report, "controls_failed") >
		      0;
	if (cli_has(c, "json")) {
		puts(text);
		return is_bad;
	}
	json_array_foreach(json_object_get(report, "attacks"), i, row) print_row(c, row);
	if (json_object_get(report, "place"))
		printf("\nIn a guest that joins a sandbox with several guests\n");
	json_array_foreach(json_object_get(report, "place"), i, row) print_row(c, row);
	if (json_object_get(report, "forked"))
		printf("\nIn a session that a template forked%s\n",
		       cli_value(c, "allow-host") ? ", behind a gateway" : "");
	json_array_foreach(json_object_get(report, "forked"), i, row) print_row(c, row);
	if (json_object_get(report, "pod"))
		printf("\nThe pod with its WebAssembly layer switched off: native programs where a "
		       "module would run\n");
	json_array_foreach(json_object_get(report, "pod"), i, row) print_row(c, row);
	printf("\n%lld held, %lld open, %lld broken, as %s\n", number_of(report, "held"),
	       number_of(report, "open"), number_of(report, "broken"), text_of(report, "user"));
	if (number_of(report, "lacking") > 0)
		printf("%lld are not held on the rung without namespaces (cordon doctor)\n",
		       number_of(report, "lacking"));
	return is_bad;
}

/* One line per attack: its name, for --attack, and what it tries. */
static int list_attacks(const struct cli *c)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_free char *text = NULL;
	cleanup_json json_t *list = NULL;
	size_t i;
	json_t *one;

	if (cordon_attacks(&text, &e) < 0)
		return cli_fail(c, e);
	if (cli_has(c, "json")) {
		puts(text);
		return 0;
	}
	if (json_parse(text, strlen(text), 0, &list, &e) < 0)
		return cli_fail(c, e);
	json_array_foreach(list, i, one)
		printf("%-28s %s\n", text_of(one, "name"), text_of(one, "attack"));
	return 0;
}

static int run(struct cli *c, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (cli_has(c, "list"))
		return list_attacks(c);
	return cli_has(c, "prove") ? prove(c) : ladder(c);
}

static const struct cli_option options[] = {
	{ "prove", 0, NULL, "run every attack in the sandbox and say what stopped it", false },
	{ "list", 0, NULL, "prove: only print the names of the attacks and what they try", false },
	{ "attack", 'a', "NAME", "prove: only this attack", false },
	{ "guest", 'g', "GUEST", "prove: only in this guest's sandbox", false },
	{ "allow-host", 0, "HOST", "prove: with the network open to this host, through the gateway",
	  false },
	{ "control", 0, NULL,
	  "prove: also try each attack outside the sandbox, where it should work", false },
	{ "quick", 'q', NULL, "prove: do not find out which layer stopped it", false },
	{ "progress", 0, NULL, "prove: print a line of JSON after each attack", false },
	{ "json", 'j', NULL, "print one line of JSON", false },
	{ 0 },
};

static const struct cli_example examples[] = {
	{ "cordon doctor", "what this machine can enforce, and how to get what it lacks" },
	{ "cordon doctor --prove", "each attack, its outcome, and the layer that stopped it" },
	{ 0 },
};

const struct verb verb_doctor = {
	.name = "doctor",
	.summary = "show and prove what this machine can enforce",
	.usage = "[--prove [--list] [--attack NAME] [--allow-host HOST] [--control]] [--json]",
	.options = options,
	.run = run,
	.about = "Prints what this machine can enforce: each layer of the sandbox, whether it "
		 "is there, and if not, why and how to get it; where control groups can be "
		 "made; which guests are installed.\n\n"
		 "With --prove it runs every known attack through the same launch path as all "
		 "code, and switches layers off in turn to see which one stops the attack. It "
		 "runs the attacks again in a guest that joins a sandbox, and in sessions and "
		 "sandboxes that a template forks. It also runs every attack in a pod, if there is "
		 "a pod image, with the "
		 "WebAssembly layer switched off: only the filter that a pod loads itself (the "
		 "seal) and the sandbox remain.\n\n"
		 "With --control each attack is also tried outside the sandbox, in a harmless "
		 "form, to show that it would work there. --allow-host opens the network to one "
		 "host through the gateway; all other attacks must still fail.\n\n"
		 "Exit status: 0, or 1 if an attack succeeded or could not be judged.",
	.examples = examples,
};
