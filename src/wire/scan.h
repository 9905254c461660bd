/* wire/scan.h - checks one JSON text strictly and in place, without building a tree. A guest's line
 * is checked before anything is allocated for it: grammar, UTF-8, depth, number of values,
 * duplicate keys, range of numbers. What is accepted here is also accepted by base/json.h, except
 * that "\u0000" is allowed inside strings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* docs/values.md allows a million elements; the rest is for the envelope around them. */
	SCAN_MAX_VALUES = 1000000 + 4096,
};

/* Bytes inside the scanned text; data NULL: absent. */
struct scan_slice {
	char *data;
	size_t len;
};

/* One member that the caller wants. */
struct scan_member {
	const char *name;
	struct scan_slice value; /* raw JSON; filled by scan_object */
};

/* Checks that text is exactly one JSON object and finds the values of the wanted members. NULL on
 * success, otherwise the reason ("not valid UTF-8"). text[len] must be readable. Values are set
 * only on success. */
const char *scan_object(char *text, size_t len, struct scan_member *members, size_t count);
/* The same for any JSON value. */
const char *scan_value(char *text, size_t len);

/* The type of a checked value, by its first byte. */
bool scan_is_string(struct scan_slice s);
bool scan_is_object(struct scan_slice s);
bool scan_is_null(struct scan_slice s);
/* Decodes a checked JSON string in place, over its raw text, and adds a NUL. A NUL inside becomes
 * U+FFFD, so that the text is not cut off when shown. */
struct scan_slice scan_take_string(struct scan_slice raw);
/* False: the raw value is neither true nor false. */
bool scan_get_bool(struct scan_slice raw, bool *ret);
/* False: the raw value is not a 64-bit integer. */
bool scan_get_int(struct scan_slice raw, int64_t *ret);
