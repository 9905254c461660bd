/* guest/runtime.h - the runtimes of inside/guests/, embedded when the project was built. */
#pragma once

#include <stddef.h>

#include "wall/launch.h"

/* Puts all files of a runtime ("python", "python-source", "r", "node", "sh", "lib") into
 * /run/cordon. CORDON_NOT_FOUND: this build has no such runtime. */
int runtime_add(struct launch *l, const char *runtime);
