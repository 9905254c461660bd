/* wire/columns.h - binary columns (docs/values.md): large parts of a value, in one file in memory
 * beside the JSON. A table says where each column lies. This checks the table and the bytes that
 * decoders rely on. The bytes are read in small pieces and never mapped: a hole of a sparse file
 * costs nothing here, and a file that is shorter than it seemed is an error and no signal. */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum {
	COLUMNS_ALIGN = 64,
	COLUMNS_MAX = 100000, /* in one table */
};

struct columns;

/* Parses and checks a table: known types, aligned, ascending, without overlap, inside its `bytes`,
 * which are at most max_bytes. */
int columns_new(const char *json, size_t len, uint64_t max_bytes, struct columns **ret,
		struct cordon_error **reterr);
struct columns *columns_free(struct columns *c);
uint64_t columns_get_bytes(const struct columns *c);
/* Checks the file: its size, the offsets of texts, that texts are UTF-8, that truth values are 0 or
 * 1. It must be sealed before. */
int columns_check(const struct columns *c, int fd, struct cordon_error **reterr);

DEFINE_FREEP(struct columns *, columns_free)
#define cleanup_columns CLEANUP(columns_freep)
