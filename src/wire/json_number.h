/* wire/json_number.h - the grammar and the range of one JSON number. */
#pragma once

#include <stdbool.h>

/* The end of the number that starts at p, or NULL when there is none, when an integer does not fit
 * into 64 bits, or when a real would be infinite. *end must be readable and no digit. */
const char *number_end(const char *p, const char *end);
