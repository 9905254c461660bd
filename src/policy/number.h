/* policy/number.h - positive whole numbers with a unit and a range, some of which may be
 * unlimited. */
#pragma once

#include "policy/field.h"

/* label: names the field in errors, such as "timeout_ms" or "Limit 'cpu'". */
int number_read(const struct field *f, const char *label, const json_t *j, uint64_t *ret,
		struct cordon_error **reterr);
/* Adds the least and the most, as cells of a table: " 1 ms | 24 h |". */
int number_range(const struct field *f, struct buf *b);
