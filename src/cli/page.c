/* cli/page.c - see page.h. */
#include "cli/page.h"

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
