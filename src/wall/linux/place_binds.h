/* wall/linux/place_binds.h - one list of mounts from the launches of all guests of a place. */
#pragma once

#include "wall/linux/blueprint.h"

/* A directory comes before what is below it, no path comes twice, and what a directory shows
 * already is left out. The strings belong to the launches. The caller frees *ret. 0 or
 * -CORDON_NOMEM. */
int place_binds_merge(const struct blueprint_options *o, struct launch_bind **ret,
		      size_t *ret_count);
/* Whether the rule for /etc or the one for /usr lets the guest read what is at this path. In a
 * place, /usr may have programs for another language only. Then a guest has no such rule and reads
 * just what its own launch has: the loader starts any program that it can read. */
bool place_binds_covers(const struct blueprint_options *o, const char *path);
