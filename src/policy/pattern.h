/* policy/pattern.h - syntax of host patterns: exact names, "*.suffix", "*", addresses and
 * networks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Splits "name", "name:port", "[v6]:port" or "10.0.0.0/8", checks it, and writes it in lower case
 * without a trailing dot. The caller frees *ret; *ret_port 0: none. where: names the field in
 * errors. */
int pattern_parse(const char *text, const char *where, char **ret, uint16_t *ret_port,
		  struct cordon_error **reterr);
/* Whether the pattern covers this exact host. Addresses and networks only if spelled the same. */
bool pattern_covers(const char *pattern, const char *host);
