/* cli/language.h - which language a piece of code is written in: its #! line, then its name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct language {
	const char *guest;
	bool is_typescript; /* for node, once its types are taken out */
};

/* path NULL: code without a name, such as -e's or standard input's, which is Python unless its
 * #! line says otherwise. What is not known is an error that lists what is. */
int language_of(const char *path, const char *code, size_t len, struct language *ret,
		struct cordon_error **reterr);
