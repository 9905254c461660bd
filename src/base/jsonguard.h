/* base/jsonguard.h - protects jansson's parser when memory runs out.
 *
 * jansson's lexer does not check whether a token's buffer could grow: bytes that do not fit are
 * dropped, so the token differs from what was sent, and the search for its end reads past the
 * buffer. So the parser gets a reserve before it starts. The first allocation that fails is served
 * from the reserve, the input ends there, and the result is discarded. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Makes jansson allocate through this file. For programs of our own, once, before anything is
 * parsed: it holds for the whole process, so the library leaves it to the program around it. */
void jsonguard_install(void);
/* json_loadb(). *ret_nomem: it failed because memory ran out. */
json_t *jsonguard_parse(const char *text, size_t len, size_t flags, json_error_t *e,
			bool *ret_nomem);
