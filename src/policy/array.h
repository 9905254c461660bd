/* policy/array.h - arrays of records (mounts, network rules, secrets) in a policy. */
#pragma once

#include "policy/kind.h"

/* How to handle one item. Items start zeroed; done() accepts a half-built one. */
struct array_of {
	size_t size;
	size_t max; /* how many items */
	bool star;  /* "*" is short for ["*"] */
	/* where: "mounts[2]" */
	int (*read)(void *item, const char *where, const json_t *j, struct cordon_error **reterr);
	json_t *(*write)(const void *item, bool with_secrets);
	int (*copy)(void *dst, const void *src);
	void (*done)(void *item);
	int (*say)(const void *item, struct buf *b);
};

/* The functions of a kind that sets `items`. */
int array_read(const struct field *f, struct policy *p, const json_t *j,
	       struct cordon_error **reterr);
json_t *array_write(const struct field *f, const struct policy *p, bool with_secrets);
int array_copy(const struct field *f, struct policy *dst, const struct policy *src);
void array_done(const struct field *f, struct policy *p);
int array_say(const struct field *f, const struct policy *p, struct buf *b);
enum kind_extent array_extent(const struct field *f, const struct policy *p);

#define ARRAY_KIND(items_)                                                                         \
	{                                                                                          \
		.read = array_read, .parse = kind_parse_array, .write = array_write,               \
		.copy = array_copy, .done = array_done, .say = array_say, .extent = array_extent,  \
		.items = (items_),                                                                 \
	}

/* A member of an object as text without NUL; *ret is unchanged if it is missing. */
int array_text(const json_t *obj, const char *where, const char *key, const char **ret,
	       struct cordon_error **reterr);
/* Refuses members that are not among the names. */
int array_keys(const json_t *obj, const char *where, const char *const *names, size_t count,
	       struct cordon_error **reterr);
