/* tools/form.h - checks that a tagged value (docs/values.md) contains what its tag says. The guest
 * writes the tag, so a "float" may hold a list; that must not pass for a number. */
#pragma once

#include <stdbool.h>

#include "base/json.h"

bool form_is_valid(const json_t *value, const char *tag);
