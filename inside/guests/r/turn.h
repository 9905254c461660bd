/* inside/guests/r/turn.h - the state of executions, and functions that R calls. */
#pragma once

#include "inside/guests/r/cordon_r.h"

const char *turn_id(void);                   /* of the execution, as JSON */
unsigned long turn_next_call(void);          /* the next tool call's number; 0: nothing runs */
size_t turn_limit(SEXP bytes, bool is_tool); /* of a message; NULL: the session's limit */
void turn_renew(void);

SEXP turn_init(SEXP runtime, SEXP words);
SEXP turn_welcome(void);
SEXP turn_serve(SEXP lines);
SEXP turn_top(SEXP function);
SEXP turn_cores(void);
SEXP turn_state(void);
SEXP turn_error(void);
SEXP turn_running(void);
SEXP turn_warnings(void);
SEXP turn_reply(SEXP fields, SEXP stored);

/* text.c: text of values and code that needs no R evaluation. */
bool text_plain(struct bytes *b, SEXP v); /* as print() shows it, as a JSON string; false: ask R */
bool text_has_word(const char *code, SEXP words); /* any of the words, as a whole name */
/* As R reads a file: without a byte order mark, and with Windows line ends allowed. */
SEXP text_code(struct json text);
void text_locale(void); /* sets a UTF-8 locale */
