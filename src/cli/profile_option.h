/* cli/profile_option.h - the option --profile: a policy by its name, from the program or from the
 * user's own files. */
#pragma once

#include "cli/option.h"

/* The document of a profile; the caller frees it. An own file comes before one of the program with
 * the same name. It must belong to the user, and nobody else may be able to write to it. */
int profile_load(const char *name, char **ret, struct cordon_error **reterr);
/* Prints all profiles with a line each, or as JSON. The exit status. */
int profile_print_all(const struct cli *c);
