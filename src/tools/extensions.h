/* tools/extensions.h - the shell command `extensions`, which describes the tools. */
#pragma once

#include "base/json.h"
#include "cordon/tools.h"
#include "policy/policy.h"

/* list [--category C] [--json] | info NAME | --help. args: a JSON array of strings, or NULL.
 * Returns {"stdout", "stderr", "exit_code"}, a new reference; NULL: out of memory. Shows only tools
 * that the policy lets this session call. */
json_t *extensions_run(struct cordon_tools *tools, const struct policy *policy, const json_t *args);
