/* cli/suggest.h - `cordon policy suggest`: from results to a change of the policy. */
#pragma once

#include "cli/option.h"

/* paths ends with NULL. The exit status. */
int suggest_run(const struct cli *c, char **paths);
