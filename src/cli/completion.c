/* cli/completion.c - see completion.h. */
#include "cli/completion.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/verb.h"
#include "policy/field.h"
#include "policy/kind.h"

#define LEVELS "permissive standard strict"
#define GUESTS "python r node sh pod"
#define LAYERS                                                                                     \
	"user pid mount net ipc uts cgroup landlock seccomp rlimits cgroups own-net landlock-net " \
	"landlock-scope"
/* Commands that the completion runs to get words. */
#define ATTACKS "cordon doctor --prove --list 2>/dev/null | cut -d' ' -f1"
#define PROFILES "cordon policy profiles 2>/dev/null | cut -d' ' -f1"
#define SAVED "cordon files ls 2>/dev/null | cut -d' ' -f1"

/* What a value is, by its name in the help or, for some, by the option's name. */
enum value { VALUE_ANY, VALUE_FILE, VALUE_DIR, VALUE_FIELD, VALUE_ASKED, VALUE_WORDS };

struct values {
	enum value what;
	const char *words; /* VALUE_WORDS: the words; VALUE_ASKED: the command */
};

static const struct row {
	const char *option, *called; /* matches either; NULL: any */
	struct values values;
} rows[] = {
	{ "attack", NULL, { VALUE_ASKED, ATTACKS } },
	{ "workspace", NULL, { VALUE_ASKED, SAVED } },
	{ "profile", NULL, { VALUE_ASKED, PROFILES } },
	{ "project", NULL, { VALUE_DIR, NULL } },
	{ NULL, "LEVEL", { VALUE_WORDS, LEVELS } },
	{ NULL, "GUEST", { VALUE_WORDS, GUESTS } },
	{ NULL, "HOW", { VALUE_WORDS, "ask allow deny" } },
	{ NULL, "SHELL", { VALUE_WORDS, "bash zsh fish" } },
	{ NULL, "KEY=VALUE", { VALUE_FIELD, NULL } },
	{ NULL, "DIR", { VALUE_DIR, NULL } },
	{ NULL, "FILE", { VALUE_FILE, NULL } },
	{ NULL, "PATH", { VALUE_FILE, NULL } },
	{ NULL, "HOST:GUEST", { VALUE_FILE, NULL } },
	{ NULL, "HOST:GUEST[:MODE]", { VALUE_FILE, NULL } },
};

static struct values values_of(const struct cli_option *o)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (str_eq(rows[i].option, o->name) || str_eq(rows[i].called, o->value))
			return rows[i].values;
	return (struct values){ .what = VALUE_ANY };
}

/* The operands of a verb that are fixed words. */
static void put_operands(const struct verb *v)
{
	for (size_t i = 0; v->words && v->words[i]; i++)
		printf(" %s", v->words[i]);
	if (str_eq(v->name, "shell"))
		printf(" " GUESTS);
	for (size_t i = 0; str_eq(v->name, "help") && verb_table[i]; i++)
		printf(" %s", verb_table[i]->name);
}

/* The words that a policy field accepts; NULL: it takes other values. */
static const char *words_of_field(const struct field *f)
{
	if (f->kind == &kind_flag)
		return "true false";
	if (f->kind == &kind_level)
		return LEVELS;
	if (f->kind == &kind_layers)
		return LAYERS;
	if (str_eq(f->name, "audit_sync"))
		return "never close always";
	return f->unlimited ? "none" : NULL;
}

static void put_fields(void)
{
	for (size_t i = 0; i < field_count; i++)
		printf("%s%s=", i ? " " : "", field_table[i].name);
}

/* The branches of `case FIELD in`, which bash and zsh share. */
static void put_field_cases(const char *indent, const char *set)
{
	for (size_t i = 0; i < field_count; i++) {
		const char *words = words_of_field(&field_table[i]);
		if (words)
			printf("%s%s) %s(%s) ;;\n", indent, field_table[i].name, set, words);
	}
}

/* Escapes a shell's special characters. */
static void put_quoted(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			(void)putchar('\\');
		(void)putchar(*text);
	}
}

/* Escapes for single quotes in sh. */
static void put_single(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			(void)fputs("'\\''", stdout);
		else
			(void)putchar(*text);
	}
}

/* Escapes for single quotes in sh, and the special characters of zsh's _arguments and _describe. */
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

/* ---- bash */

static void bash_action(const struct values *v)
{
	switch (v->what) {
	case VALUE_WORDS:
		printf("words=(%s)", v->words);
		break;
	case VALUE_ASKED:
		printf("mapfile -t words < <(%s)", v->words);
		break;
	case VALUE_FIELD:
		printf("_cordon_fields \"$field\"");
		break;
	case VALUE_DIR:
		printf("compopt -o dirnames +o default; return");
		break;
	case VALUE_FILE: /* -o default */
	case VALUE_ANY:
		printf("return");
	}
}

static void bash_verb(const struct verb *v)
{
	for (const struct cli_option *o = v->options; o && o->name; o++) {
		struct values values = values_of(o);
		if (!o->value)
			continue;
		printf("\t%s:--%s", v->name, o->name);
		if (o->letter)
			printf(" | %s:-%c", v->name, o->letter);
		printf(") ");
		bash_action(&values);
		printf(" ;;\n");
	}
	printf("\t%s:*) words=(", v->name);
	for (const struct cli_option *o = v->options; o && o->name; o++)
		printf("--%s%s ", o->name, o->value ? "=" : "");
	printf("--help");
	put_operands(v);
	printf(") ;;\n");
}

static void bash_page(void)
{
	printf("# bash completion for cordon; made by `cordon help --completion=bash`\n"
	       "_cordon_fields() # FIELD, or nothing: fills words\n{\n\tcase $1 in\n\t\"\") "
	       "words=(");
	put_fields();
	printf(") ;;\n");
	put_field_cases("\t", "words=");
	printf("\tesac\n}\n\n_cordon()\n{\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} at=$COMP_CWORD prev "
	       "field=\n"
	       "\tlocal -a words=()\n"
	       "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\twords=(");
	for (size_t i = 0; verb_table[i]; i++)
		printf("%s ", verb_table[i]->name);
	printf("--version --help)\n"
	       "\t\tmapfile -t COMPREPLY < <(compgen -W \"${words[*]}\" -- \"$cur\")\n"
	       "\t\treturn\n\tfi\n"
	       "\t# The shell makes a word of every =, so --set FIELD=VALUE is four or six of "
	       "them.\n"
	       "\t[ \"$cur\" = = ] && cur= && at=$((at + 1))\n"
	       "\tprev=${COMP_WORDS[at - 1]}\n"
	       "\tif [ \"$prev\" = = ]; then\n"
	       "\t\tprev=${COMP_WORDS[at - 2]}\n"
	       "\t\tif [[ $prev != -* ]]; then\n"
	       "\t\t\tfield=$prev prev=${COMP_WORDS[at - 3]}\n"
	       "\t\t\t[ \"$prev\" = = ] && prev=${COMP_WORDS[at - 4]}\n"
	       "\t\tfi\n\tfi\n"
	       "\tcase $verb:$prev in\n");
	for (size_t i = 0; verb_table[i]; i++)
		bash_verb(verb_table[i]);
	printf("\tesac\n"
	       "\tmapfile -t COMPREPLY < <(compgen -W \"${words[*]}\" -- \"$cur\")\n"
	       "\t[[ ${COMPREPLY[*]} == *= ]] && compopt -o nospace\n"
	       "\treturn 0\n}\n"
	       "complete -o default -F _cordon cordon\n");
}

/* ---- zsh */

static void zsh_action(const struct values *v)
{
	switch (v->what) {
	case VALUE_WORDS:
		printf("(%s)", v->words);
		break;
	case VALUE_ASKED:
		printf("{compadd -- ${(f)\"$(");
		put_single(v->words);
		printf(")\"}}");
		break;
	case VALUE_FIELD:
		printf("_cordon_fields");
		break;
	case VALUE_DIR:
		printf("_files -/");
		break;
	case VALUE_FILE:
		printf("_files");
		break;
	case VALUE_ANY:
		printf(" ");
	}
}

static void zsh_option(const struct cli_option *o, bool is_letter)
{
	struct values values = values_of(o);

	printf(" \\\n\t\t'%s", o->repeats ? "*" : "");
	if (is_letter)
		printf("-%c%s[", o->letter, o->value ? "+" : "");
	else
		printf("--%s%s[", o->name, o->value ? "=" : "");
	put_zsh(o->help);
	printf("]");
	if (o->value) {
		printf(":");
		put_zsh(o->value);
		printf(":");
		zsh_action(&values);
	}
	printf("'");
}

static void zsh_verb(const struct verb *v)
{
	bool has_words = v->words || str_eq(v->name, "shell") || str_eq(v->name, "help");

	printf("\t%s) _arguments", v->name);
	for (const struct cli_option *o = v->options; o && o->name; o++) {
		zsh_option(o, false);
		if (o->letter)
			zsh_option(o, true);
	}
	printf(" \\\n\t\t'1: :(%s)'", v->name);
	if (has_words) {
		printf(" '2: :(");
		put_operands(v);
		printf(")'");
	}
	printf(" '*:file:_files' ;;\n");
}

static void zsh_page(void)
{
	printf("#compdef cordon\n# made by `cordon help --completion=zsh`\n"
	       "_cordon_fields() {\n\tlocal -a words\n"
	       "\tif ! compset -P 1 '*='; then\n\t\twords=(");
	put_fields();
	printf(")\n\t\tcompadd -S '' -- $words\n\t\treturn\n\tfi\n"
	       "\tcase ${${IPREFIX%%=}##*=} in\n");
	put_field_cases("\t", "words=");
	printf("\tesac\n\tcompadd -- $words\n}\n\n"
	       "_cordon() {\n\tif (( CURRENT == 2 )); then\n\t\tlocal -a verbs=(\n");
	for (size_t i = 0; verb_table[i]; i++) {
		printf("\t\t\t'%s:", verb_table[i]->name);
		put_zsh(verb_table[i]->summary);
		printf("'\n");
	}
	printf("\t\t)\n\t\t_describe verb verbs\n\t\treturn\n\tfi\n\tcase $words[2] in\n");
	for (size_t i = 0; verb_table[i]; i++)
		zsh_verb(verb_table[i]);
	printf("\tesac\n}\n_cordon \"$@\"\n");
}

/* ---- fish */

static void fish_values(const struct values *v)
{
	switch (v->what) {
	case VALUE_WORDS:
		printf(" -x -a '%s'", v->words);
		break;
	case VALUE_ASKED:
		printf(" -x -a '(");
		put_quoted(v->words);
		printf(")'");
		break;
	case VALUE_FIELD:
		printf(" -x -a '");
		put_fields();
		for (size_t i = 0; i < field_count; i++) {
			const char *words = words_of_field(&field_table[i]);
			for (; words && *words; words += strspn(words, " ")) {
				size_t n = strcspn(words, " ");
				printf(" %s=%.*s", field_table[i].name, (int)n, words);
				words += n;
			}
		}
		printf("'");
		break;
	case VALUE_DIR:
		printf(" -x -a '(__fish_complete_directories)'");
		break;
	case VALUE_FILE:
		printf(" -r -F");
		break;
	case VALUE_ANY:
		printf(" -x");
	}
}

static void fish_verb(const struct verb *v)
{
	printf("complete -c cordon -n __fish_use_subcommand -a %s -d '", v->name);
	put_quoted(v->summary);
	printf("'\n");
	for (const struct cli_option *o = v->options; o && o->name; o++) {
		struct values values = values_of(o);
		printf("complete -c cordon -n '__fish_seen_subcommand_from %s' -l %s", v->name,
		       o->name);
		if (o->letter)
			printf(" -s %c", o->letter);
		if (o->value)
			fish_values(&values);
		printf(" -d '");
		put_quoted(o->help);
		printf("'\n");
	}
	if (v->words || str_eq(v->name, "shell") || str_eq(v->name, "help")) {
		printf("complete -c cordon -n '__fish_seen_subcommand_from %s' -a '", v->name);
		put_operands(v);
		printf("'\n");
	}
}

static void fish_page(void)
{
	printf("# fish completion for cordon; made by `cordon help --completion=fish`\n");
	for (size_t i = 0; verb_table[i]; i++)
		fish_verb(verb_table[i]);
}

int completion_print(const struct cli *c, const char *shell)
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
