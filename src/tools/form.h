/* tools/form.h - checks that a tagged value of docs/values.md is what its tag says. The guest
 * writes the tag: a "float" that holds a list must not count as a number. */
#pragma once

#include <stdbool.h>

#include "base/json.h"

bool form_is_valid(const json_t *value, const char *tag);
