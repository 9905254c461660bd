/* tools/budget.h - counts an execution's tool calls, in total and per tool. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget {
	uint64_t limit, made; /* limit UINT64_MAX: no limit */
	uint64_t *counts;     /* by the tool's index */
	size_t cap;
};

void budget_begin(struct budget *b, uint64_t limit);
void budget_done(struct budget *b);
/* Counts one call; false: over the limit. */
bool budget_take(struct budget *b);
/* Counts one call of this tool. 1: allowed, 0: over its max_calls (0: no limit), or
 * -CORDON_NOMEM. */
int budget_take_tool(struct budget *b, size_t index, uint64_t max_calls);
