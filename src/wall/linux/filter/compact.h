/* wall/linux/filter/compact.h - at build time: makes an equivalent filter with about half the
 * instructions. The kernel's time to load a filter grows with its length, at every launch. */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

enum { COMPACT_MAX = 4096 };

struct program {
	struct sock_filter code[COMPACT_MAX];
	size_t len;
};

/* from: libseccomp's filter, with one comparison for each system call. ret: one comparison for each
 * range of calls that are treated alike. Exits if the two filters differ for any call. */
void compact(const struct program *from, struct program *ret);
