/* wall/linux/namespaces.h - which namespaces a process is in: part of the library and of
 * cordon-init. */
#pragma once

#include <stdint.h>

#include "wall/linux/format.h"

/* Inode numbers of the calling process's namespaces, in the status page's order; 0: unknown. */
void namespaces_read(uint64_t ret[static PLAN_NAMESPACES]);
