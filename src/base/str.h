/* base/str.h - owned strings and string lists. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

char *str_dup(const char *s); /* NULL in, NULL out; NULL when out of memory */
char *str_ndup(const char *s, size_t len);
char *str_printf(const char *fmt, ...) PRINTF_LIKE(1, 2); /* NULL when out of memory */
bool str_eq(const char *a, const char *b);                /* NULL equals only NULL */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
char *str_vprintf(const char *fmt, va_list ap) PRINTF_LIKE(1, 0);
bool str_is_utf8(const char *s, size_t len);
/* The length of the UTF-8 sequence that s (len > 0 bytes) begins with, or minus the count of bytes
 * to replace by one U+FFFD when it is broken. */
int str_utf8_next(const char *s, size_t len);
/* Copies with a NUL; false (and an empty dst) when it does not fit. */
bool str_copy(char *dst, size_t dst_size, const char *src);

/* The nearest of the candidates by edit distance, or NULL when nothing is near enough to offer. */
const char *str_nearest(const char *word, const char *const *candidates, size_t count);

/* A list of owned strings. Zero is empty. */
struct strlist {
	char **items; /* NULL-terminated when count > 0 */
	size_t count;
};

int strlist_add(struct strlist *l, const char *s); /* copies; 0 or -CORDON_NOMEM */
int strlist_copy(struct strlist *dst, const struct strlist *src);
bool strlist_has(const struct strlist *l, const char *s);
void strlist_done(struct strlist *l);
#define cleanup_strlist CLEANUP(strlist_done)
