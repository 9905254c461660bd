/* cli/companion.h - finds the programs that come with `cordon` and are started by it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Beside the running program, in the build tree, or installed. False: it is missing. */
bool companion_find(const char *name, char *ret, size_t size);
