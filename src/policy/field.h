/* policy/field.h - the table of policy fields. It drives reading, printing, checking, explaining,
 * comparing, --set and the table in docs/policy.md. */
#pragma once

#include "policy/policy.h"

enum { FIELD_LEVELS = 3 }; /* LEVEL_PERMISSIVE - 1 ... LEVEL_STRICT - 1 */

enum field_unit { UNIT_NONE, UNIT_MS, UNIT_SECONDS, UNIT_BYTES, UNIT_PERCENT };

/* Whether a larger value is looser or tighter, for `policy diff`. */
enum field_sense { SENSE_NONE, SENSE_LOOSER, SENSE_TIGHTER };

struct kind;

struct field {
	const char *name; /* as in JSON; with a dot for a field of an inner object */
	const struct kind *kind;
	size_t offset;       /* of the value in struct policy */
	size_t count_offset; /* of an array's length */
	enum field_unit unit;
	enum field_sense sense;
	bool unlimited; /* accepts null, "none" and "unlimited" */
	uint64_t min, max;
	uint64_t number[FIELD_LEVELS];     /* numbers, flags and layers */
	const char *words[FIELD_LEVELS];   /* lists and texts, written as for --set; NULL: empty */
	const char *named[FIELD_LEVELS];   /* lists: the value that a level's name stands for */
	bool (*is_name)(const char *word); /* checks one entry of a list; NULL: anything is valid */
	const char *entry;                 /* name of an entry in errors */
	const char *enforced;              /* what enforces it */
	const char *says;                  /* sentence for explain; {} is replaced by the value */
	const char *says_all;              /* sentence for unlimited, "*" and true */
	const char *says_none;             /* sentence for empty, null and false */
};

extern const struct field field_table[];
extern const size_t field_count;

const struct field *field_find(const char *name); /* NULL: unknown */
/* Whether this is the name of an inner object ("network"). */
bool field_is_group(const char *name);
/* CORDON_INVALID: names the unknown field, the nearest valid one, and all valid ones of its group.
 * name: the full dotted name. */
int field_refuse(const char *name, struct cordon_error **reterr);

/* One row of the table in docs/policy.md, without the newline; the caller frees it. NULL: out of
 * memory. */
char *field_doc_row(const struct field *f);
/* The same of the table of ranges there; empty if the field is not a number. */
char *field_doc_range(const struct field *f);
