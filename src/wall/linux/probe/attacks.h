/* wall/linux/probe/attacks.h - one function per attack of list.h. */
#pragma once

#include "wall/linux/probe/list.h"
#include "wall/linux/probe/probe.h"

#define X(id, attack, control, flags, holds) int probe_##id(const struct bait *b);
PROBES(X)
#undef X
