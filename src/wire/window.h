/* wire/window.h - which call numbers were already used, in constant memory. Numbers may arrive
 * slightly out of order, because several processes of one shell can call tools. A used or too old
 * number is refused. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { WINDOW_CALLS = 1024 };

struct window {
	uint64_t highest;
	uint64_t bits[WINDOW_CALLS / 64]; /* bit n % WINDOW_CALLS: call n was made */
};

/* True the first time n is seen. */
bool window_take(struct window *w, uint64_t n);
