/* policy/difference.h - what differs between two policies in one field. */
#pragma once

#include "policy/field.h"

/* "FIELD: A -> B (looser)", empty if they are equal; the caller frees it. NULL: out of memory. */
char *difference_of(const struct field *f, const struct policy *a, const struct policy *b);
