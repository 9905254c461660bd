/* cli/completion.h - completions for the shells, made from the tables of verbs and policy fields.
 */
#pragma once

#include "cli/option.h"

/* On stdout; 0, or 2 for an unknown shell. */
int completion_print(const struct cli *c, const char *shell);
