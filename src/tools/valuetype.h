/* tools/valuetype.h - the types that an argument can have, by the names of JSON Schema and of R. */
#pragma once

#include <stdbool.h>

#include "base/json.h"

bool valuetype_is_known(const char *name);
/* The known type whose name is most similar, or NULL. */
const char *valuetype_nearest(const char *name);
/* Whether a value (docs/values.md) has this type. */
bool valuetype_fits(const char *type, const json_t *value);
/* The name of value's type in the language of `type`: "character" (R) or "string" (JSON). */
const char *valuetype_name(const char *type, const json_t *value);
/* The tag of a tagged form ("vec"), or NULL. */
const char *valuetype_tag(const json_t *value);
