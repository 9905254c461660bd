/* files/linediff.h - what changed between two texts, by lines. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct linediff {
	uint32_t added, removed; /* lines */
	bool is_exact; /* false: too different to find the least; counts are an upper bound */
};

/* Counts, and appends a unified diff (three lines of context, without file names) to ret_text as
 * far as it has room. ret_text may be NULL. 0 or -CORDON_NOMEM. */
int linediff_compare(const char *old, size_t old_len, const char *new, size_t new_len,
		     struct linediff *ret, struct buf *ret_text);
