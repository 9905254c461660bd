/* wall/linux/linux_wall.h - the wall of Linux: namespaces, Landlock, seccomp, control groups. */
#pragma once

#include "wall/wall.h"

extern const struct wall linux_wall;
