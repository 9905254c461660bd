/* inside/guests/sh/preload_history.h - the commands of a session, for `history list`. */
#pragma once

#include <stddef.h>

/* bash has `history list` and `history clear` from now on, beside its own options. */
void preload_history_begin(void);
/* Adds the code of an execution. */
void preload_history_add(const char *code, size_t len);
