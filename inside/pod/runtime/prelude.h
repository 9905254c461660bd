/* inside/pod/runtime/prelude.h - shell code that runs before a command: sets variables, environment
 * and arguments. */
#pragma once

#include "inside/lib/wire_json.h"

/* Commands of at most this many bytes each, NUL-terminated, one after the other. */
struct prelude {
	struct bytes text;
	size_t step;       /* where the last one begins */
	size_t at;         /* the next one to run */
	char *const *base; /* the environment that the session began with; NULL: none */
};

/* Adds the message's env, context, args and directory; status: the value for $?. False: a name is
 * not valid for a variable. Empty if there is nothing to set. */
bool prelude_fill(struct prelude *p, struct json message, int status);
/* The next command, or NULL. */
const char *prelude_next(struct prelude *p);
void prelude_clear(struct prelude *p);
/* A value as one string, as for a variable. */
void prelude_text(struct json v, struct bytes *ret);
bool prelude_is_name(const char *s);
enum { PRELUDE_LEAVE_BYTES = 160 };
/* A line that ends our own commands: what came before leaves no trace but this status. */
void prelude_leave(int status, char ret[static PRELUDE_LEAVE_BYTES]);
/* Adds what a new shell begins with: `history list` and `history clear`. Before prelude_fill. */
void prelude_set_up(struct prelude *p);
/* The last step, which leaves this status; prelude_fill adds it too. */
void prelude_end(struct prelude *p, int status);
