/* tools/numeral.h - numbers of JSON and of tagged values, compared exactly. A double holds integers
 * only up to 2^53, so nothing is rounded to one before it is compared. */
#pragma once

#include "base/json.h"

enum numeral_order { NUMERAL_LESS, NUMERAL_EQUAL, NUMERAL_MORE, NUMERAL_UNORDERED };

/* Whether a value stands for one number: a JSON number or one of the tags int, float, decimal and
 * duration. */
bool numeral_is(const json_t *value);
/* a against b. Unordered: one of them is nan, or is not written as a number. */
enum numeral_order numeral_compare(const json_t *a, const json_t *b);
