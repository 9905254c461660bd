/* tools/regexp.h - regular expressions of schemas, matched in linear time.
 *
 * A subset of what JSON Schema recommends: characters, classes, . \d \w \s \b and their opposites,
 * ^ $, groups, |, * + ? {m,n}. There are no back references and no lookaround, so an expression is
 * an automaton: all its states advance over the text together, once, and no text can make it slow.
 * Anything else is refused with a reason. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct regexp;

/* NULL with a reason if the pattern is invalid or there is no memory. */
struct regexp *regexp_new(const char *pattern, size_t len, const char **ret_why);
struct regexp *regexp_free(struct regexp *r); /* accepts NULL; always returns NULL */
/* Whether the pattern occurs anywhere in the text, which is UTF-8. Costs regexp_cost() steps per
 * byte. */
bool regexp_is_in(const struct regexp *r, const char *text, size_t len);
size_t regexp_cost(const struct regexp *r);
