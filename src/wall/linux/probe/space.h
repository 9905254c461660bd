/* wall/linux/probe/space.h - temporary namespaces, in which the control of an attack on mounts,
 * names or ids runs without touching the machine. */
#pragma once

#include "wall/linux/probe/probe.h"

/* Runs fn as root of new namespaces, with private mounts and a tmpfs on /tmp. */
int space_run(probe_fn fn, const struct bait *b);
