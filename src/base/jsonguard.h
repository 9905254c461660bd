/* base/jsonguard.h - memory for jansson's parser when there is none.
 *
 * Its lexer does not look whether the buffer of a token could grow: what does not fit is left out,
 * the token is another one than was sent, and what looks for its end reads past the buffer. So the
 * parser is given a reserve before it starts. The first allocation that fails is served from it,
 * the text ends there, and with it the parse; its result is thrown away. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Makes jansson allocate through this file. For programs of our own, once, before anything is
 * parsed: it holds for the whole process, so the library leaves it to the program around it. */
void jsonguard_install(void);
/* json_loadb(). *ret_nomem: it failed because memory ran out. */
json_t *jsonguard_parse(const char *text, size_t len, size_t flags, json_error_t *e,
			bool *ret_nomem);
