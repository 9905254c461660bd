/* inside/guests/r/turn.h - the state of executions, and functions that R calls. */
#pragma once

#include "inside/guests/r/cordon_r.h"

const char *turn_id(void);                   /* of the execution, as JSON */
unsigned long turn_next_call(void);          /* the next tool call's number; 0: nothing runs */
size_t turn_limit(SEXP bytes, bool is_tool); /* of a message; NULL: the session's limit */
void turn_renew(void);
int template_random(void); /* for the seed of a forked session */

SEXP turn_init(SEXP runtime, SEXP words);
SEXP turn_welcome(void);
SEXP turn_serve(SEXP lines);
SEXP turn_top(SEXP function);
SEXP turn_cores(void);
SEXP turn_state(void);
SEXP turn_error(void);
SEXP turn_asking(void);
SEXP turn_running(void);
SEXP turn_warnings(void);
SEXP turn_reply(SEXP fields, SEXP stored);

/* handle.c: objects that the host has an id of. */
void handle_init(void);
void handle_renew(void); /* in a forked session: forgets the template's */

void arguments_take(struct json list); /* sets what commandArgs(TRUE) returns */

/* text.c: text of values and code that needs no R evaluation. */
bool text_plain(struct bytes *b, SEXP v); /* as print() shows it, as a JSON string; false: ask R */
bool text_has_word(const char *code, SEXP words); /* any of the words, as a whole name */
/* As R reads a file: without a byte order mark, and with Windows line ends allowed. */
SEXP text_code(struct json text);
void text_locale(void); /* sets a UTF-8 locale */

/* Sends the columns that were collected of a value and appends their table; NULL, or what is wrong.
 */
const char *turn_put_columns(struct bytes *b);
/* Loads the columns of the variables. */
void turn_take_columns(struct json table);
/* The warnings, with one before them that says why the value is missing. The code succeeded, so it
 * is no failure that its last value cannot cross. */
SEXP turn_lacks(SEXP old, const char *why);
