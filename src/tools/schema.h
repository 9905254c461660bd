/* tools/schema.h - what arguments a tool takes: a subset of JSON Schema, or a short form.
 *
 * Short form: {"a": "number", "b": {"type": "string", "required": false}, "c": null} (c: any type).
 * Types: JSON's names (number integer string boolean array object null) and R's (numeric character
 * logical list data.frame), where R's also take vectors (docs/values.md). A keyword that is not
 * implemented is refused by name when the tool is registered, never ignored. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/json.h"

/* Compiles either form to one checked schema, a new reference. args_json NULL: no arguments. */
int schema_compile(const char *tool, const char *args_json, json_t **ret,
		   struct cordon_error **reterr);
/* The schema that $ref names (in $defs or definitions of the root, or the root itself). NULL: there
 * is no $ref. */
const json_t *schema_target(const json_t *root, const json_t *schema);
/* Checks the arguments of one call. The message of a CORDON_INVALID error is for the guest. */
int schema_check(const json_t *schema, const char *tool, const json_t *args,
		 struct cordon_error **reterr);
/* The same for JSON text. NULL: valid; otherwise the message, which the caller frees. */
char *schema_refusal(const json_t *schema, const char *tool, const char *args, size_t len);
/* {name: {"type": ..., "required": bool}}, from which the guest generates its wrappers. NULL: no
 * memory. */
json_t *schema_summary(const json_t *schema);
/* ^[A-Za-z.][A-Za-z0-9_.]*$, at most 128 characters. */
bool schema_is_name(const char *name);
