/* cli/page.c - man pages and shell completions, made from the verbs' tables. */
#include "cli/page.h"

#include <string.h>

#include "base/str.h"

/* Text in which scdoc's and the shells' special characters are put out of force. */
static void put_escaped(const char *text, const char *special, const char *escape)
{
	for (; *text; text++) {
		if (strchr(special, *text))
			(void)fputs(escape, stdout);
		(void)putchar(*text);
	}
}

/* Inside single quotes of sh, with the further specials of zsh's _arguments and _describe. */
static void put_zsh(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			(void)fputs("'\\''", stdout);
		else if (strchr("[]:\\", *text))
			printf("\\%c", *text);
		else
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

static void put_words(const struct verb *v)
{
	for (const struct cli_option *o = v->options; o && o->name; o++)
		printf(" --%s%s", o->name, o->value ? "=" : "");
	printf(" --help");
	for (size_t i = 0; v->words && v->words[i]; i++)
		printf(" %s", v->words[i]);
}

static void bash_page(void)
{
	printf("# bash completion for cordon; made by `cordon help --completion=bash`\n"
	       "_cordon()\n{\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} words=\n"
	       "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\twords=\"");
	for (size_t i = 0; verb_table[i]; i++)
		printf("%s%s", i ? " " : "", verb_table[i]->name);
	printf(" --version --help\"\n\telse\n\t\tcase ${COMP_WORDS[1]} in\n");
	for (size_t i = 0; verb_table[i]; i++) {
		printf("\t\t%s) words=\"", verb_table[i]->name);
		put_words(verb_table[i]);
		printf("\" ;;\n");
	}
	printf("\t\tesac\n\tfi\n"
	       "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	       "\t[[ ${COMPREPLY[*]} == *= ]] && compopt -o nospace\n}\n"
	       "complete -o default -F _cordon cordon\n");
}

static void zsh_page(void)
{
	printf("#compdef cordon\n# made by `cordon help --completion=zsh`\n"
	       "_cordon() {\n\tif (( CURRENT == 2 )); then\n\t\tlocal -a verbs=(\n");
	for (size_t i = 0; verb_table[i]; i++) {
		printf("\t\t\t'%s:", verb_table[i]->name);
		put_zsh(verb_table[i]->summary);
		printf("'\n");
	}
	printf("\t\t)\n\t\t_describe verb verbs\n\t\treturn\n\tfi\n\tcase $words[2] in\n");
	for (size_t i = 0; verb_table[i]; i++) {
		printf("\t%s) _arguments", verb_table[i]->name);
		for (const struct cli_option *o = verb_table[i]->options; o && o->name; o++) {
			printf(" '%s--%s%s[", o->repeats ? "*" : "", o->name, o->value ? "=" : "");
			put_zsh(o->help);
			printf("]%s%s'", o->value ? ":" : "", o->value ? o->value : "");
		}
		printf(" '*:file:_files' ;;\n");
	}
	printf("\tesac\n}\n_cordon \"$@\"\n");
}

static void fish_page(void)
{
	printf("# fish completion for cordon; made by `cordon help --completion=fish`\n");
	for (size_t i = 0; verb_table[i]; i++) {
		const struct verb *v = verb_table[i];
		printf("complete -c cordon -n __fish_use_subcommand -a %s -d '", v->name);
		put_escaped(v->summary, "'\\", "\\");
		printf("'\n");
		for (const struct cli_option *o = v->options; o && o->name; o++) {
			printf("complete -c cordon -n '__fish_seen_subcommand_from %s' -l %s%s -d "
			       "'",
			       v->name, o->name, o->value ? " -r" : "");
			put_escaped(o->help, "'\\", "\\");
			printf("'\n");
		}
		for (size_t k = 0; v->words && v->words[k]; k++)
			printf("complete -c cordon -n '__fish_seen_subcommand_from %s' -a %s\n",
			       v->name, v->words[k]);
	}
}

int page_completion(const struct cli *c, const char *shell)
{
	if (str_eq(shell, "bash"))
		bash_page();
	else if (str_eq(shell, "zsh"))
		zsh_page();
	else if (str_eq(shell, "fish"))
		fish_page();
	else
		return cli_usage(c, "there are completions for bash, zsh and fish, not for '%s'",
				 shell);
	return 0;
}
