/* base/str.h - owned strings and string lists. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

char *str_dup(const char *s); /* NULL in, NULL out; also NULL if out of memory */
char *str_ndup(const char *s, size_t len);
char *str_printf(const char *fmt, ...) PRINTF_LIKE(1, 2); /* NULL: out of memory */
bool str_eq(const char *a, const char *b);                /* NULL equals only NULL */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
size_t str_count(const char *bytes, size_t len, char c); /* how often c is among them */
char *str_vprintf(const char *fmt, va_list ap) PRINTF_LIKE(1, 0);
bool str_is_utf8(const char *s, size_t len);
/* The length of the UTF-8 sequence at s (len > 0 bytes). If it is invalid: minus the number of
 * bytes to replace by one U+FFFD. */
int str_utf8_next(const char *s, size_t len);
/* Copies with a NUL. False: it does not fit, and dst is empty. */
bool str_copy(char *dst, size_t dst_size, const char *src);

/* The most similar candidate by edit distance; NULL: none is similar enough to suggest. */
const char *str_nearest(const char *word, const char *const *candidates, size_t count);

/* A list of owned strings. Zero: empty. */
struct strlist {
	char **items; /* NULL-terminated when count > 0 */
	size_t count;
};

int strlist_add(struct strlist *l, const char *s); /* copies; 0 or -CORDON_NOMEM */
int strlist_copy(struct strlist *dst, const struct strlist *src);
bool strlist_has(const struct strlist *l, const char *s);
void strlist_done(struct strlist *l);
#define cleanup_strlist CLEANUP(strlist_done)
