/* wire/json_number.h - checks the grammar and the range of one JSON number. */
#pragma once

#include <stdbool.h>

/* The end of the number at p. NULL: not a number, an integer beyond 64 bits, or a real that would
 * be infinite. *end must be readable and not a digit. */
const char *number_end(const char *p, const char *end);
