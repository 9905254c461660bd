/* base/jsonnumber.h - checks the grammar and the range of one JSON number. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jsonnumber {
	const char *end; /* NULL: not a number */
	bool is_real;    /* it has a point or an exponent */
	bool fits;       /* an integer within 64 bits, or a real that is not infinite */
};

/* The number at p. */
struct jsonnumber jsonnumber_scan(const char *p, const char *end);
/* The value of a checked integer. */
int64_t jsonnumber_int(const char *p, size_t len);
