/* files/linediff.h - compares two texts line by line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct linediff {
	uint32_t added, removed; /* lines */
	bool is_exact; /* false: too different for the shortest diff; the counts are an upper bound
			*/
};

/* Counts the changes and appends a unified diff (three lines of context, without file names) to
 * ret_text while it has room. ret_text may be NULL. 0 or -CORDON_NOMEM. */
int linediff_compare(const char *old, size_t old_len, const char *new, size_t new_len,
		     struct linediff *ret, struct buf *ret_text);
