/* wall/linux/probe/space.h - a throwaway set of namespaces in which an attack on mounts, names or
 * ids is carried out as a control without touching the machine. */
#pragma once

#include "wall/linux/probe/probe.h"

/* Runs fn as root of new namespaces, with private mounts and a tmpfs on /tmp. */
int space_run(probe_fn fn, const struct bait *b);
