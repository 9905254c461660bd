/* serve/mcp/mcplang.h - names of languages, as people and models write them. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct mcplang {
	const char *guest;  /* "python", "r", "node", "sh" or "pod" */
	bool is_typescript; /* node, after its types were stripped */
};

/* The names that a schema lists, separated by spaces. */
#define MCPLANG_NAMES "python r javascript typescript bash"

/* "Python", "py", "python3.11", "js", "TypeScript", "bash"... */
int mcplang_find(const char *name, struct mcplang *ret, struct cordon_error **reterr);
