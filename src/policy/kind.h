/* policy/kind.h - the operations on a field's value, by kind of value. */
#pragma once

#include "base/buf.h"
#include "policy/field.h"

enum kind_extent {
	EXTENT_SOME, /* a specific value */
	EXTENT_ALL,  /* unlimited, "*", true */
	EXTENT_NONE, /* empty, null, false */
};

struct array_of;

struct kind {
	/* Reads JSON into the policy, replacing the old value. On failure the old value stays. */
	int (*read)(const struct field *f, struct policy *p, const json_t *j,
		    struct cordon_error **reterr);
	/* Turns the text of --set into the JSON that read() takes. */
	int (*parse)(const struct field *f, const char *text, json_t **ret,
		     struct cordon_error **reterr);
	/* A new reference; NULL: out of memory. Includes secrets only if with_secrets. */
	json_t *(*write)(const struct field *f, const struct policy *p, bool with_secrets);
	/* Copies into a zeroed value. 0 or -CORDON_NOMEM. NULL: a plain copy of bytes. */
	int (*copy)(const struct field *f, struct policy *dst, const struct policy *src);
	/* NULL: owns nothing. Zeroes the value. */
	void (*done)(const struct field *f, struct policy *p);
	/* The value in words, for a sentence. 0 or a negative code. */
	int (*say)(const struct field *f, const struct policy *p, struct buf *b);
	enum kind_extent (*extent)(const struct field *f, const struct policy *p);
	const struct array_of *items; /* for arrays: how to handle one item */
};

extern const struct kind kind_level, kind_number, kind_flag, kind_text, kind_list, kind_names,
	kind_env, kind_ports, kind_layers, kind_mounts, kind_rules, kind_secrets;

/* Pointer to the value in the policy. */
static inline void *kind_value(const struct field *f, const struct policy *p)
{
	return (char *)(uintptr_t)p + f->offset;
}

static inline size_t *kind_count(const struct field *f, const struct policy *p)
{
	return (size_t *)(void *)((char *)(uintptr_t)p + f->count_offset);
}

/* CORDON_INVALID "LABEL must be WANT, got: J", where J is shortened and printable. */
int kind_refuse(const char *label, const char *want, const json_t *j, struct cordon_error **reterr);
int kind_nomem(struct cordon_error **reterr);
/* The text of a JSON string without NUL; otherwise NULL. */
const char *kind_string(const json_t *j);
/* For parse(): "[...]" and "{...}" are read as JSON, anything else as a comma-separated list. */
int kind_parse_array(const struct field *f, const char *text, json_t **ret,
		     struct cordon_error **reterr);
/* Joins the words with ", ". */
int kind_say_words(const struct strlist *l, struct buf *b);
