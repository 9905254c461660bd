/* cli/language.h - finds the language of a piece of code: by its #! line, then by its name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct language {
	const char *guest;
	bool is_typescript; /* for node, after its types were stripped */
};

/* The guest by a name as people write it: "Python", "js", "bash". NULL and unknown ones stay. */
bool language_named(const char *word, struct language *ret);
/* ret->guest: the guest that the user named, which stays; NULL: none. path NULL: code without a
 * name, from -e or standard input; that is Python unless its #! line says otherwise. An unknown
 * language is an error that lists the known ones. */
int language_of(const char *path, const char *code, size_t len, struct language *ret,
		struct cordon_error **reterr);
/* Refuses a shell script whose #! line has options: one that relies on -e must not go on after a
 * failure. */
int language_check_options(const char *code, size_t len, struct cordon_error **reterr);
