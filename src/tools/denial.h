/* tools/denial.h - refused tools, for the result of an execution. */
#pragma once

#include "base/json.h"

/* Notes one refusal of the tool in *list, which is made when it is NULL. rule: "tools" or
 * "commands" (the policy's lists) or "approval". A list that is long enough takes no further names.
 */
void denial_add(json_t **list, const char *tool, const char *rule);
