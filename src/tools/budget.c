/* tools/budget.c - see budget.h. */
#include "tools/budget.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

void budget_begin(struct budget *b, uint64_t limit)
{
	b->limit = limit;
	b->made = 0;
	if (b->counts)
		memset(b->counts, 0, b->cap * sizeof(*b->counts));
}

void budget_done(struct budget *b)
{
	free_ptrp(&b->counts);
	b->cap = 0;
}

bool budget_take(struct budget *b)
{
	return ++b->made <= b->limit;
}

int budget_take_tool(struct budget *b, size_t index, uint64_t max_calls)
{
	if (index >= b->cap) {
		size_t cap = index + 16;
		uint64_t *counts = mem_grow(b->counts, cap, sizeof(*counts));
		if (!counts)
			return -CORDON_NOMEM;
		memset(counts + b->cap, 0, (cap - b->cap) * sizeof(*counts));
		b->counts = counts;
		b->cap = cap;
	}
	return max_calls == 0 || ++b->counts[index] <= max_calls;
}
