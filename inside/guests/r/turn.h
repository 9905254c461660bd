/* inside/guests/r/turn.h - executions: their state, and what R calls. */
#pragma once

#include "inside/guests/r/cordon_r.h"

const char *turn_id(void);                   /* of the execution, as JSON */
unsigned long turn_next_call(void);          /* a tool call's number; 0 where nothing runs */
size_t turn_limit(SEXP bytes, bool is_tool); /* of a message: the session's where it is NULL */
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

/* text.c: what can be said of a value or of code without asking R. */
bool text_plain(struct bytes *b, SEXP v); /* how print() shows it, as a JSON string; false: ask R */
bool text_has_word(const char *code, SEXP words); /* any of them, as a name of its own */
/* As R reads a file: without a byte order mark, and its lines may end as those of Windows do. */
SEXP text_code(struct json text);
void text_locale(void); /* characters are those of UTF-8 */
