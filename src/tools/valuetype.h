/* tools/valuetype.h - the types that an argument can be declared to have, and what a value is. */
#pragma once

#include <stdbool.h>

#include "base/json.h"

bool valuetype_is_known(const char *name);
/* The nearest type's name, or NULL. */
const char *valuetype_nearest(const char *name);
/* Whether value, in the forms of docs/values.md, is of the type. */
bool valuetype_fits(const char *type, const json_t *value);
/* What value is, in the language that type's name belongs to: "character" or "string". */
const char *valuetype_name(const char *type, const json_t *value);
/* The tag of a tagged form ("vec"), or NULL. */
const char *valuetype_tag(const json_t *value);
