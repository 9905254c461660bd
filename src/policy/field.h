/* policy/field.h - the one table of policy fields: it drives reading, printing, checking,
 * explaining, comparing, --set and the table in docs/policy.md. */
#pragma once

#include "policy/policy.h"

enum { FIELD_LEVELS = 3 }; /* LEVEL_PERMISSIVE - 1 ... LEVEL_STRICT - 1 */

enum field_unit { UNIT_NONE, UNIT_MS, UNIT_SECONDS, UNIT_BYTES, UNIT_PERCENT };

/* What a larger value means, for `policy diff`. */
enum field_sense { SENSE_NONE, SENSE_LOOSER, SENSE_TIGHTER };

struct kind;

struct field {
	const char *name; /* as in JSON; a dot for the fields of an inner object */
	const struct kind *kind;
	size_t offset;       /* of the value in struct policy */
	size_t count_offset; /* of an array's length */
	enum field_unit unit;
	enum field_sense sense;
	bool unlimited; /* null, "none" and "unlimited" are accepted */
	uint64_t min, max;
	uint64_t number[FIELD_LEVELS];   /* numbers, flags and layers */
	const char *words[FIELD_LEVELS]; /* lists and texts, written as for --set; NULL: nothing */
	const char *named[FIELD_LEVELS]; /* lists: what a level's name stands for as the value */
	bool (*is_name)(
		const char *word); /* what one entry of a list may look like; NULL: anything */
	const char *entry;         /* what one entry is called in errors */
	const char *enforced;      /* by what */
	const char *says;          /* the sentence for explain; {} becomes the value */
	const char *says_all;      /* the sentence for unlimited, "*" and true */
	const char *says_none;     /* the sentence for empty, null and false */
};

extern const struct field field_table[];
extern const size_t field_count;

const struct field *field_find(const char *name); /* NULL when unknown */
/* Is this the name of an inner object ("network")? */
bool field_is_group(const char *name);
/* CORDON_INVALID: names the unknown one, the nearest valid one, and all valid ones of its group.
 * name is the full dotted name. */
int field_refuse(const char *name, struct cordon_error **reterr);

/* One row of the table in docs/policy.md, without the newline; to be freed. NULL: out of memory. */
char *field_doc_row(const struct field *f);
