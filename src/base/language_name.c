/* base/language_name.c - see guest_alias.h. */
#include "base/language_name.h"

#include <string.h>
#include <strings.h>

static const struct {
	const char *name;
	struct language_name known;
} names[] = {
	{ "python", { "python", false } },   { "py", { "python", false } },
	{ "ipython", { "python", false } },  { "r", { "r", false } },
	{ "rscript", { "r", false } },       { "rlang", { "r", false } },
	{ "javascript", { "node", false } }, { "js", { "node", false } },
	{ "node", { "node", false } },       { "nodejs", { "node", false } },
	{ "node.js", { "node", false } },    { "mjs", { "node", false } },
	{ "ecmascript", { "node", false } }, { "typescript", { "node", true } },
	{ "ts", { "node", true } },          { "bash", { "sh", false } },
	{ "sh", { "sh", false } },           { "shell", { "sh", false } },
	{ "shellscript", { "sh", false } },  { "pod", { "pod", false } },
};

/* Also "python3" and "node 20": the version is the machine's. */
static bool is_named(const char *text, size_t len, const char *name)
{
	size_t n = strlen(name);

	if (len < n || strncasecmp(text, name, n) != 0)
		return false;
	for (size_t i = n; i < len; i++)
		if (!strchr("0123456789. ", text[i]))
			return false;
	return true;
}

bool language_name_find(const char *word, struct language_name *ret)
{
	const char *text = word ? word + strspn(word, " \t\n") : "";
	size_t len = strlen(text);

	while (len > 0 && strchr(" \t\n", text[len - 1]))
		len--;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (is_named(text, len, names[i].name)) {
			*ret = names[i].known;
			return true;
		}
	return false;
}
