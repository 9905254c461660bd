/* policy/profile.h - the profiles in the program: policy documents for common work, by name. */
#pragma once

#include <stddef.h>

struct profile {
	const char *name;
	const char *summary;       /* half a line: what it is for, and what it stops */
	const unsigned char *text; /* the document, as in a policy file; NUL-terminated */
};

extern const struct profile profile_table[];
extern const size_t profile_count;

const struct profile *profile_find(const char *name); /* NULL: unknown */
