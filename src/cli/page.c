/* cli/page.c - see page.h. */
#include "cli/page.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

/* Escapes scdoc's special characters. */
static void put_escaped(const char *text, const char *special, const char *escape)
{
	for (; *text; text++) {
		if (strchr(special, *text))
			(void)fputs(escape, stdout);
		(void)putchar(*text);
	}
}

static void put_scdoc(const char *text)
{
	put_escaped(text, "\\*_#[]", "\\");
}

static void man_options(const struct verb *v)
{
	printf("# OPTIONS\n\n");
	for (const struct cli_option *o = v->options; o && o->name; o++) {
		if (o->letter)
			printf("*-%c*%s%s%s, ", o->letter, o->value ? " _" : "",
			       o->value ? o->value : "", o->value ? "_" : "");
		printf("*--%s*", o->name);
		if (o->value)
			printf("=_%s_", o->value);
		printf("\n\t");
		put_scdoc(o->help);
		printf(".%s\n\n", o->repeats ? " May be given more than once." : "");
	}
	printf("*-h*, *--help*\n\tShow a short help and exit.\n\n");
}

static void man_exit_status(void)
{
	printf("# EXIT STATUS\n\n"
	       "*0* success; *2* wrong usage or a bad policy; *124* timeout; *125* Cordon itself "
	       "failed; *126* denied by policy.\n\n");
}

void page_man(const struct verb *v)
{
	printf("cordon-%s(1)\n\n# NAME\n\ncordon-%s - ", v->name, v->name);
	put_scdoc(v->summary);
	printf("\n\n# SYNOPSIS\n\n*cordon %s* ", v->name);
	put_scdoc(v->usage);
	printf("\n\n");
	if (v->about) {
		printf("# DESCRIPTION\n\n");
		put_scdoc(v->about);
		printf("\n\n");
	}
	man_options(v);
	man_exit_status();
	if (v->examples) {
		printf("# EXAMPLES\n\n");
		for (const struct cli_example *e = v->examples; e->command; e++) {
			printf("*");
			put_scdoc(e->command);
			printf("*\n\t");
			put_scdoc(e->meaning);
			printf("\n\n");
		}
	}
	printf("# SEE ALSO\n\n*cordon*(1)\n");
}

/* One word of a paragraph, so that Markdown shows it as it is. Returns its width. */
static size_t put_word(const char *word, size_t len)
{
	size_t width = len;

	for (size_t i = 0; i < len; i++) {
		if (strchr("\\*_#<>[]`|", word[i])) {
			(void)putchar('\\');
			width++;
		}
		(void)putchar(word[i]);
	}
	return width;
}

/* Paragraphs and lists, with lines that are not too wide even if every character is escaped. */
static void put_prose(const char *text)
{
	enum { WIDTH = 96 };
	bool is_item = false;
	size_t column = 0;

	while (*text) {
		size_t len = strcspn(text, " \n");
		if (column == 0 && !is_item)
			is_item = strncmp(text, "- ", 2) == 0;
		if (column > 0 && column + 1 + len > WIDTH) {
			printf("\n%s", is_item ? "  " : "");
			column = is_item ? 2 : 0;
		} else if (column > 0) {
			(void)putchar(' ');
			column++;
		}
		column += put_word(text, len);
		for (text += len; *text == ' ' || *text == '\n'; text++) {
			if (*text == '\n') {
				(void)putchar('\n');
				column = 0;
				is_item = false;
			}
		}
	}
	(void)putchar('\n');
}

/* In a cell a bar ends the column, also in code. */
static void put_cell(const char *text)
{
	put_escaped(text, "|", "\\");
}

static void markdown_options(const struct verb *v)
{
	if (!v->options || !v->options[0].name)
		return;
	printf("\n| option | |\n|---|---|\n");
	for (const struct cli_option *o = v->options; o->name; o++) {
		printf("| ");
		if (o->letter)
			printf("`-%c`, ", o->letter);
		printf("`--%s%s", o->name, o->value ? "=" : "");
		put_cell(o->value ? o->value : "");
		printf("` | ");
		put_cell(o->help);
		printf("%s |\n", o->repeats ? "; may be given more than once" : "");
	}
}

static void markdown_verb(const struct verb *v)
{
	printf("\n## cordon %s\n\n```\ncordon %s %s\n```\n\n", v->name, v->name, v->usage);
	(void)putchar(toupper((unsigned char)v->summary[0]));
	(void)put_word(v->summary + 1, strlen(v->summary + 1));
	printf(".\n");
	if (v->about) {
		(void)putchar('\n');
		put_prose(v->about);
	}
	markdown_options(v);
	if (!v->examples || !v->examples[0].command)
		return;
	printf("\n```sh\n");
	for (const struct cli_example *e = v->examples; e->command; e++)
		printf("# %s\n%s\n", e->meaning, e->command);
	printf("```\n");
}

void page_markdown(void)
{
	printf("# The command line\n\n"
	       "Every verb with its options, as the program has them: `cordon help --markdown` "
	       "prints this\npage, and a test compares both. `-h` or `--help` works with every "
	       "verb.\n\n");
	printf("| exit status | of every verb, if it is not the code's own |\n|---|---|\n"
	       "| 0 | success |\n| 1 | the code that was run failed |\n"
	       "| 2 | wrong usage, or a bad policy |\n"
	       "| 124 | the code took longer than its policy allows |\n"
	       "| 125 | Cordon itself failed |\n| 126 | denied by policy |\n"
	       "| 137 | killed for memory or CPU time |\n");
	for (size_t i = 0; verb_table[i]; i++)
		markdown_verb(verb_table[i]);
}
