/* base/json.h - strict JSON: jansson behind one header. Refuses duplicate keys, bad UTF-8, more
 * than 64 levels, trailing text and oversize. 64-bit integers and doubles are exact. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct buf;

enum { JSON_MAX_DEPTH = 64 };

/* jansson.h defines json_decrefp. */
#define cleanup_json CLEANUP(json_decrefp)

/* Parses exactly one value. max_bytes 0: no limit. The error names line and column.
 * On success *ret is a new reference. */
int json_parse(const char *text, size_t len, size_t max_bytes, json_t **ret,
	       struct cordon_error **reterr);
/* Reads a whole file (regular, at most max_bytes). */
int json_parse_file(const char *path, size_t max_bytes, json_t **ret, struct cordon_error **reterr);

/* Compact text on one line. Every double has the digits that read back as the same value, and '.'
 * or 'e'. Keys are in insertion order. NULL: out of memory (or nested beyond 1000 levels). */
char *json_text(const json_t *j, size_t *ret_len);
char *json_text_pretty(const json_t *j);
/* Adds bytes as the inside of a string: escaped, and U+FFFD for what is not UTF-8. */
int json_add_text(struct buf *b, const char *bytes, size_t len);

/* Typed getters on an object. Missing: *ret is unchanged and 0 is returned. Wrong type:
 * CORDON_INVALID with the JSON pointer of the field. where: the pointer of obj, "" for the root. */
int json_get_string(const json_t *obj, const char *where, const char *key, const char **ret,
		    struct cordon_error **reterr);
int json_get_uint(const json_t *obj, const char *where, const char *key, uint64_t *ret,
		  struct cordon_error **reterr);
int json_get_bool(const json_t *obj, const char *where, const char *key, bool *ret,
		  struct cordon_error **reterr);
int json_get_object(const json_t *obj, const char *where, const char *key, json_t **ret_borrowed,
		    struct cordon_error **reterr);
int json_get_array(const json_t *obj, const char *where, const char *key, json_t **ret_borrowed,
		   struct cordon_error **reterr);

/* Refuses keys of obj that are not among the names, and suggests the nearest. */
int json_check_keys(const json_t *obj, const char *where, const char *const *names, size_t count,
		    struct cordon_error **reterr);

/* A JSON string from bytes that may not be UTF-8: bad sequences become U+FFFD. */
json_t *json_string_lossy(const char *bytes, size_t len);
