/* cli/verbs.c - the table of verbs. */
#include "base/str.h"
#include "cli/verb.h"

const struct verb *const verb_table[] = {
#define X(name) &verb_##name,
	CLI_VERBS(X)
#undef X
		NULL,
};

static const char *const names[] = {
#define X(name) #name,
	CLI_VERBS(X)
#undef X
};

const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; verb_table[i]; i++)
		if (str_eq(verb_table[i]->name, name))
			return verb_table[i];
	return NULL;
}

const char *verb_nearest(const char *name)
{
	return str_nearest(name, names, sizeof(names) / sizeof(*names));
}
