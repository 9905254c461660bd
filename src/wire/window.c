/* wire/window.c - see window.h. A sliding bitmap of call numbers. */
#include "wire/window.h"

#include <string.h>

static uint64_t *word_of(struct window *w, uint64_t n)
{
	return &w->bits[n % WINDOW_CALLS / 64];
}

bool window_take(struct window *w, uint64_t n)
{
	uint64_t bit = (uint64_t)1 << (n % 64);

	if (n > w->highest) {
		if (n - w->highest >= WINDOW_CALLS)
			memset(w->bits, 0, sizeof(w->bits));
		else
			for (uint64_t i = w->highest + 1; i <= n; i++)
				*word_of(w, i) &= ~((uint64_t)1 << (i % 64));
		w->highest = n;
	} else if (w->highest - n >= WINDOW_CALLS || (*word_of(w, n) & bit)) {
		return false;
	}
	*word_of(w, n) |= bit;
	return true;
}
