/* cli/completion.h - shell completions, generated from the tables of verbs and policy fields. */
#pragma once

#include "cli/option.h"

/* Prints to stdout; 0, or 2 for an unknown shell. */
int completion_print(const struct cli *c, const char *shell);
