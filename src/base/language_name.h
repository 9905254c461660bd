/* base/language_name.h - names of languages, as people and models write them. */
#pragma once

#include <stdbool.h>

struct language_name {
	const char *guest;  /* "python", "r", "node", "sh" or "pod" */
	bool is_typescript; /* node, after its types were stripped */
};

/* "Python", "py", "python3.11", "js", "TypeScript", "bash"... */
bool language_name_find(const char *word, struct language_name *ret);
