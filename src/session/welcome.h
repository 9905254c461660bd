/* session/welcome.h - the line that answers a guest's hello (docs/wire.md). */
#pragma once

#include <stddef.h>

#include "base/json.h"
#include "policy/policy.h"

/* tools: JSON text of an array of descriptions or NULL; env: object or NULL. To be freed; NULL: no
 * memory. */
char *welcome_line(const struct policy *p, const char *tools, json_t *env, size_t *ret_len);
