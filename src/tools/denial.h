/* tools/denial.h - denied tool calls, for the result of an execution. */
#pragma once

#include "base/json.h"

/* Adds a denial of the tool to *list, which is created if NULL. rule: the policy field "tools" or
 * "commands", or "approval". A full list gets no further names. */
void denial_add(json_t **list, const char *tool, const char *rule);
