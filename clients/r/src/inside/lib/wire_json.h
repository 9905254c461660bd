/* inside/lib/wire_json.h - a small JSON parser for the wire: a line is checked once as a whole,
 * then read as slices of its text, so that numbers keep every digit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "inside/lib/bytes.h"

struct json {
	const char *at;
	size_t len; /* 0: absent */
};

/* Whether the text is one JSON value. All functions below need checked text. */
bool json_check(const char *text, size_t len);

/* The kind of a value: { [ " t f n, 0 for a number, NUL if absent. */
char json_kind(struct json v);
/* A member of an object; absent if there is none. */
struct json json_get(struct json object, const char *key);
bool json_is(struct json v, const char *string);
/* A number as an unsigned integer, or fallback. */
unsigned long json_number(struct json v, unsigned long fallback);

/* Walks an array or an object; *at starts as NULL. key is absent in an array. */
bool json_each(struct json container, const char **at, struct json *ret_key,
	       struct json *ret_value);

/* A string's bytes. */
void json_string(struct json v, struct bytes *ret);
/* Writes bytes as a JSON string; invalid UTF-8 becomes U+FFFD. */
void json_quote(struct bytes *b, const char *data, size_t len);
bool json_is_utf8(const char *data, size_t len);
