/* inside/pod/runtime/prelude.h - what goes before a command: variables, environment, arguments, as
 * shell text. */
#pragma once

#include "inside/lib/wire_json.h"

/* Commands of at most this many bytes each, NUL-terminated, one after the other. */
struct prelude {
	struct bytes text;
	size_t step; /* where the last of them began */
	size_t at;   /* the next to run */
};

/* Adds the message's env, context, args and directory; status is what $? shall be. False: a name is
 * no name of a variable. Empty where there is nothing to set. */
bool prelude_fill(struct prelude *p, struct json message, int status);
/* The next command, or NULL. */
const char *prelude_next(struct prelude *p);
void prelude_clear(struct prelude *p);
/* A value as one string, as a variable has it. */
void prelude_text(struct json v, struct bytes *ret);
bool prelude_is_name(const char *s);
