/* wall/linux/procfiles.h - files of the sandbox's /proc that describe the machine. They show the
 * sandbox's limits in the kernel's format, and nothing of the host. Made with the plan, bound over
 * the kernel's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct procfiles_options {
	uint64_t memory_bytes;
	bool has_one_core; /* it will be bound to one CPU */
};

enum { PROCFILES = 7 };
/* Their names, in the order of format.h. */
extern const char *const procfiles_names[PROCFILES];
/* The text of each. Initialises ret, which the caller owns. Negative: no memory. */
int procfiles_make(const struct procfiles_options *o, struct buf ret[static PROCFILES]);
