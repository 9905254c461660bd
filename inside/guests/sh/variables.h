/* inside/guests/sh/variables.h - what the code of a session has exported. The host keeps it for
 * snapshots, forks and exports. */
#pragma once

#include <stdbool.h>

#include "inside/lib/bytes.h"

/* Shell code that writes a record for each exported variable: VARIABLES_RECORD, NAME=VALUE, NUL.
 * It runs in a subshell and leaves no trace. */
#define VARIABLES_RECORD 'E'
#define VARIABLES_CODE                                                                             \
	"( set +eufx; IFS=$' \\t\\n'; for __cordon in $(builtin compgen -e); do "                  \
	"[[ -v $__cordon ]] && builtin printf 'E%s=%s\\0' \"$__cordon\" \"${!__cordon}\"; done )"
#define VARIABLES_MAX (512u << 10)

/* The value that a variable began with; NULL: there was none. */
const char *variables_base(char *const *base, const char *name);
/* Takes the records out of what the code has written; the last one may be incomplete. */
void variables_collect(const char *data, size_t len, struct bytes *ret);
/* Writes a JSON object with what differs from the base: NAME to its value, or to null if it is
 * gone. records: NAME=VALUE, each ended by NUL. */
void variables_compare(const struct bytes *records, char *const *base, struct bytes *ret);
