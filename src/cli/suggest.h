/* cli/suggest.h - `cordon policy suggest`: from results to a change of the policy. */
#pragma once

#include <stdio.h>

#include "base/json.h"
#include "cli/option.h"

/* paths ends with NULL. The exit status. */
int suggest_run(const struct cli *c, char **paths);
/* A change of suggestion_json: what it is, what it means, which denials it lifts. */
void suggest_print_change(const struct cli *c, FILE *f, const json_t *change);
