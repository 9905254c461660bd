/* tools/form.h - whether a tagged value of docs/values.md is what its tag says. The tag is the
 * guest's word: a "float" that holds a list must not pass for a number. */
#pragma once

#include <stdbool.h>

#include "base/json.h"

bool form_is_valid(const json_t *value, const char *tag);
