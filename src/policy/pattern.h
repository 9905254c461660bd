/* policy/pattern.h - host patterns: exact names, "*.suffix", "*", addresses and networks. Syntax
 * only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Splits "name", "name:port", "[v6]:port", "10.0.0.0/8"; checks it and writes it in lower case,
 * without a dot at the end. *ret is to be freed; *ret_port is 0 when none was given. where stands
 * in errors. */
int pattern_parse(const char *text, const char *where, char **ret, uint16_t *ret_port,
		  struct cordon_error **reterr);
/* Does the pattern cover this exact host? Addresses and networks only when spelled alike. */
bool pattern_covers(const char *pattern, const char *host);
