/* cli/help.c - `cordon help`: the list of verbs, the page of one verb, and what is generated from
 * their tables. */
#include <string.h>

#include "base/str.h"
#include "cli/completion.h"
#include "cli/page.h"
#include "cli/verb.h"

static void print_overview(const struct cli *c)
{
	size_t width = 0;

	printf("%scordon%s runs untrusted code in a sandbox.\n\n", cli_style(c, STYLE_BOLD),
	       cli_style(c, STYLE_PLAIN));
	printf("Usage: cordon VERB [OPTION...] [ARGUMENT...]\n\nVerbs:\n");
	for (size_t i = 0; verb_table[i]; i++)
		if (strlen(verb_table[i]->name) > width)
			width = strlen(verb_table[i]->name);
	for (size_t i = 0; verb_table[i]; i++)
		printf("  %s%-*s%s  %s\n", cli_style(c, STYLE_BOLD), (int)width,
		       verb_table[i]->name, cli_style(c, STYLE_PLAIN), verb_table[i]->summary);
	printf("\n'cordon help VERB' explains one verb; 'cordon --version' prints the version.\n");
}

static void print_options(const struct cli *c, const struct verb *v)
{
	int width = 0;

	for (const struct cli_option *o = v->options; o && o->name; o++) {
		int len = (int)(strlen(o->name) + (o->value ? strlen(o->value) + 1 : 0));
		if (len > width)
			width = len;
	}
	printf("\n%sOptions%s\n", cli_style(c, STYLE_BOLD), cli_style(c, STYLE_PLAIN));
	for (const struct cli_option *o = v->options; o && o->name; o++) {
		int len = (int)(strlen(o->name) + (o->value ? strlen(o->value) + 1 : 0));
		printf("  %c%c%s --%s%s%s%*s  %s%s\n", o->letter ? '-' : ' ',
		       o->letter ? o->letter : ' ', o->letter ? "," : " ", o->name,
		       o->value ? "=" : "", o->value ? o->value : "", width - len, "", o->help,
		       o->repeats ? " (repeatable)" : "");
	}
}

/* Wraps at 79 columns; keeps newlines of the text. */
static void print_wrapped(const char *text)
{
	enum { WIDTH = 79 };
	size_t column = 0;

	while (*text) {
		size_t len = strcspn(text, " \n");
		if (column > 0 && column + 1 + len > WIDTH) {
			(void)putchar('\n');
			column = 0;
		}
		if (column > 0)
			(void)putchar(' ');
		printf("%.*s", (int)len, text);
		column += (column > 0) + len;
		text += len;
		for (; *text == ' ' || *text == '\n'; text++) {
			if (*text == '\n') {
				(void)putchar('\n');
				column = 0;
			}
		}
	}
	(void)putchar('\n');
}

void verb_print_help(const struct cli *c, const struct verb *v)
{
	printf("%scordon %s%s - %s\n\nUsage: cordon %s %s\n", cli_style(c, STYLE_BOLD), v->name,
	       cli_style(c, STYLE_PLAIN), v->summary, v->name, v->usage);
	if (v->about) {
		(void)putchar('\n');
		print_wrapped(v->about);
	}
	if (v->options && v->options[0].name)
		print_options(c, v);
	if (!v->examples)
		return;
	printf("\n%sExamples%s\n", cli_style(c, STYLE_BOLD), cli_style(c, STYLE_PLAIN));
	for (const struct cli_example *e = v->examples; e->command; e++)
		printf("  %s\n      %s%s%s\n", e->command, cli_style(c, STYLE_DIM), e->meaning,
		       cli_style(c, STYLE_PLAIN));
}

static int run(struct cli *c, int argc, char **argv)
{
	const char *shell = cli_value(c, "completion");

	if (shell)
		return completion_print(c, shell);
	if (cli_has(c, "markdown")) {
		if (argc > 0)
			return cli_usage(c, "--markdown is for all verbs");
		page_markdown();
		return 0;
	}
	if (cli_has(c, "verbs")) {
		for (size_t i = 0; verb_table[i]; i++)
			printf("%s\n", verb_table[i]->name);
		return 0;
	}
	if (argc == 0) {
		if (cli_has(c, "man"))
			return cli_usage(c, "--man needs a verb");
		print_overview(c);
		return 0;
	}
	const struct verb *v = verb_find(argv[0]);
	if (!v) {
		const char *nearest = verb_nearest(argv[0]);
		return nearest ? cli_usage(c, "unknown verb '%s'; did you mean '%s'?", argv[0],
					   nearest)
			       : cli_usage(c, "unknown verb '%s'", argv[0]);
	}
	if (cli_has(c, "man"))
		page_man(v);
	else
		verb_print_help(c, v);
	return 0;
}

static const struct cli_option options[] = {
	{ "man", 0, NULL, "print the verb's man page as scdoc source", false },
	{ "markdown", 0, NULL, "print the page of all verbs, docs/cli.md", false },
	{ "completion", 0, "SHELL", "print the completions for bash, zsh or fish", false },
	{ "verbs", 0, NULL, "print the names of all verbs, one per line", false },
	{ 0 },
};

static const struct cli_example examples[] = {
	{ "cordon help run", "options and examples of `cordon run`" },
	{ "cordon help --completion=bash > /etc/bash_completion.d/cordon", "completions for bash" },
	{ 0 },
};

const struct verb verb_help = {
	.name = "help",
	.summary = "explain the program or one of its verbs",
	.usage = "[--man] [VERB]",
	.options = options,
	.run = run,
	.max_operands = 1,
	.examples = examples,
};
