/* cli/unshown.h - plots and other rich outputs that a terminal does not show. */
#pragma once

#include <cordon/cordon.h>

#include "cli/option.h"

struct unshown {
	size_t plots, others;
};
void unshown_count(struct unshown *u, const char *mime);
/* Of a result. A table is printed as text already. */
void unshown_count_result(struct unshown *u, struct cordon_result *r);
/* Says on stderr what was not shown, if anything, and how to get it. */
void unshown_tell(const struct unshown *u, const struct cli *c, const char *remedy);
