/* wire/scan.h - a strict check of one JSON text in place, without building a tree of it.
 * A guest's line is checked before anything is allocated for it: grammar, UTF-8, depth, number of
 * values, duplicate keys, numbers that fit. What is accepted is also accepted by base/json.h,
 * except that "\u0000" is allowed inside strings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SCAN_MAX_DEPTH = 64,
	/* docs/values.md allows a million elements; the rest is the envelope around them. */
	SCAN_MAX_VALUES = 1000000 + 4096,
};

/* Bytes inside the scanned text; data NULL: absent. */
struct scan_slice {
	char *data;
	size_t len;
};

/* One member that the caller wants to know of. */
struct scan_member {
	const char *name;
	struct scan_slice value; /* of the raw JSON; filled by scan_object */
};

/* Checks that text is exactly one JSON object and notes where the wanted members' values are.
 * NULL on success, otherwise what is wrong, in words ("not valid UTF-8"). text[len] must be
 * readable; ret values are only set on success. */
const char *scan_object(char *text, size_t len, struct scan_member *members, size_t count);
/* The same for any JSON value. */
const char *scan_value(char *text, size_t len);

/* What a checked value is, by its first byte. */
bool scan_is_string(struct scan_slice s);
bool scan_is_object(struct scan_slice s);
bool scan_is_null(struct scan_slice s);
/* Decodes a checked JSON string in place, over its own raw text, and ends it with a NUL. A NUL
 * character inside becomes U+FFFD, so that what is shown is not cut short. */
struct scan_slice scan_take_string(struct scan_slice raw);
/* true when the raw value is true or false. */
bool scan_get_bool(struct scan_slice raw, bool *ret);
/* true when the raw value is an integer of 64 bits. */
bool scan_get_int(struct scan_slice raw, int64_t *ret);
