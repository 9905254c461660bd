/* session/welcome.h - the message that answers a guest's hello (docs/wire.md). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "policy/policy.h"

struct welcome_options {
	const struct policy *policy;
	const char *tools; /* JSON array of tool descriptions; NULL: none */
	json_t *env;       /* an object; NULL: none */
	bool ahead; /* the session is for a pool: the guest may warm up before anyone needs it */
};

/* The caller frees it; NULL: no memory. */
char *welcome_line(const struct welcome_options *o, size_t *ret_len);
