/* cli/language.c - see language.h. */
#include "cli/language.h"

#include <stdio.h>
#include <string.h>

#include "base/language_name.h"
#include "base/str.h"

enum { LINE_BYTES = 320 };

/* Which ending of a name means which guest: the only table of it. Endings of one guest stand
 * together. */
static const struct ending {
	const char *ending;
	struct language language;
} endings[] = {
	{ ".py", { "python", false } }, { ".R", { "r", false } },
	{ ".r", { "r", false } },       { ".js", { "node", false } },
	{ ".mjs", { "node", false } },  { ".cjs", { "node", false } },
	{ ".ts", { "node", true } },    { ".mts", { "node", true } },
	{ ".cts", { "node", true } },   { ".sh", { "sh", false } },
	{ ".bash", { "sh", false } },
};

static const struct interpreter {
	const char *name;
	struct language language;
} interpreters[] = {
	{ "python", { "python", false } }, { "Rscript", { "r", false } },
	{ "R", { "r", false } },           { "node", { "node", false } },
	{ "nodejs", { "node", false } },   { "ts-node", { "node", true } },
	{ "tsx", { "node", true } },       { "sh", { "sh", false } },
	{ "bash", { "sh", false } },       { "dash", { "sh", false } },
};

/* Writes all guests with their endings: "python (.py), r (.R, .r), ... and pod". */
static const char *list_known(char *ret, size_t size)
{
	const char *guest = "";
	size_t used = 0;

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings) && used < size; i++) {
		bool is_first = !str_eq(endings[i].language.guest, guest);

		guest = endings[i].language.guest;
		used += (size_t)snprintf(ret + used, size - used, "%s%s%s%s",
					 i == 0     ? ""
					 : is_first ? "), "
						    : ", ",
					 is_first ? guest : "", is_first ? " (" : "",
					 endings[i].ending);
	}
	if (used < size)
		(void)snprintf(ret + used, size - used,
			       ") and pod; notebooks are .ipynb, .Rmd "
			       "and .qmd");
	return ret;
}

/* Cuts the next word off a line; NULL: none. */
static char *next_word(char **line)
{
	char *word = *line + strspn(*line, " \t");

	if (!*word)
		return NULL;
	*line = word + strcspn(word, " \t");
	if (**line)
		*(*line)++ = '\0';
	return word;
}

/* The program of a #! line without its directory: the first word, or the argument of env. The rest
 * of the line stays in *line. */
static const char *program_of(char **line)
{
	char *word = next_word(line);
	const char *slash = word ? strrchr(word, '/') : NULL;
	const char *name = slash ? slash + 1 : word;

	if (!str_eq(name, "env"))
		return name;
	do
		word = next_word(line);
	while (word && (word[0] == '-' || strchr(word, '=')));
	slash = word ? strrchr(word, '/') : NULL;
	return slash ? slash + 1 : word;
}

/* "python3.11" and "python3" are python. */
static bool is_program(const char *name, const char *known)
{
	size_t len = strlen(known);

	return !strncmp(name, known, len) && name[len + strspn(name + len, "0123456789.")] == '\0';
}

/* Copies a #! line without these characters; false: there is none. */
static bool read_line(const char *code, size_t len, char ret[static LINE_BYTES])
{
	if (len < 2 || code[0] != '#' || code[1] != '!')
		return false;
	size_t n = len - 2 < LINE_BYTES - 1 ? len - 2 : LINE_BYTES - 1;
	memcpy(ret, code + 2, n);
	ret[n] = '\0';
	ret[strcspn(ret, "\r\n")] = '\0';
	return true;
}

int language_check_options(const char *code, size_t len, struct cordon_error **reterr)
{
	char line[LINE_BYTES], *rest = line;

	if (!read_line(code, len, line))
		return 0;
	const char *name = program_of(&rest), *option = name ? next_word(&rest) : NULL;
	if (!option || str_eq(option, "-") || str_eq(option, "--"))
		return 0;
	return err_set(reterr, CORDON_INVALID,
		       "the #! line gives %s the option '%s', which is not passed on: set it in "
		       "the script (`set -e`), or run it without, with --guest sh",
		       name, option);
}

/* 1: found in the line, 0: there is no #! line. */
static int from_line(const char *code, size_t len, struct language *ret,
		     struct cordon_error **reterr)
{
	char line[LINE_BYTES], list[LINE_BYTES], *rest = line;

	if (!read_line(code, len, line))
		return 0;
	const char *name = program_of(&rest);
	for (size_t i = 0; name && i < sizeof(interpreters) / sizeof(*interpreters); i++) {
		if (is_program(name, interpreters[i].name)) {
			*ret = interpreters[i].language;
			return 1;
		}
	}
	return err_set(reterr, CORDON_INVALID,
		       "the #! line names '%s', which is not supported: there are %s; --guest "
		       "names one",
		       name ? name : "nothing", list_known(list, sizeof(list)));
}

/* The language that the name's ending tells; NULL: none. */
static const struct language *from_ending(const char *path)
{
	for (size_t i = 0; path && i < sizeof(endings) / sizeof(*endings); i++)
		if (str_ends(path, endings[i].ending))
			return &endings[i].language;
	return NULL;
}

bool language_named(const char *word, struct language *ret)
{
	struct language_name known;

	if (!language_name_find(word, &known)) {
		ret->guest = word; /* whoever uses it lists what there is */
		return false;
	}
	*ret = (struct language){ .guest = known.guest, .is_typescript = known.is_typescript };
	return true;
}

int language_of(const char *path, const char *code, size_t len, struct language *ret,
		struct cordon_error **reterr)
{
	const struct language *named = from_ending(path);
	char list[LINE_BYTES];

	(void)language_named(ret->guest, ret);
	if (!ret->guest) {
		int r = from_line(code, len, ret, reterr);
		if (r < 0)
			return r;
	}
	if (ret->guest) { /* as with Node itself, the ending tells TypeScript */
		ret->is_typescript |= named && named->is_typescript && str_eq(ret->guest, "node");
		return 0;
	}
	if (path && !named)
		return err_set(
			reterr, CORDON_INVALID,
			"'%s' has no #! line, and its name does not tell its language: there "
			"are %s; --guest names one",
			path, list_known(list, sizeof(list)));
	*ret = named ? *named : (struct language){ .guest = "python" };
	return 0;
}
