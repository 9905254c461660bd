/* policy/explanation.h - one field of a policy in words. */
#pragma once

#include "policy/field.h"

/* The field's sentence without the newline; the caller frees it. NULL: out of memory. */
char *explanation_of(const struct field *f, const struct policy *p);
