/* tools/numeral.h - compares numbers of JSON and of tagged values exactly. A double holds integers
 * exactly only up to 2^53, so nothing is converted to double for a comparison. */
#pragma once

#include "base/json.h"

enum numeral_order { NUMERAL_LESS, NUMERAL_EQUAL, NUMERAL_MORE, NUMERAL_UNORDERED };

/* True for a JSON number and for the tags int, float, decimal and duration. */
bool numeral_is(const json_t *value);
/* Compares a with b. Unordered: one of them is NaN or not a valid number. */
enum numeral_order numeral_compare(const json_t *a, const json_t *b);
