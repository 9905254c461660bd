/* wall/filter/compact.h - build-time: the same filter in about half the instructions. The kernel's
 * work to load one grows with its length, and every launch pays it. */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

enum { COMPACT_MAX = 4096 };

struct program {
	struct sock_filter code[COMPACT_MAX];
	size_t len;
};

/* from: what libseccomp made, one comparison for each system call. ret: one for each range of them
 * that is treated alike. Ends the program when the two do not say the same about every call. */
void compact(const struct program *from, struct program *ret);
