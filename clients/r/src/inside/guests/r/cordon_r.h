/* inside/guests/r/cordon_r.h - the C part of the R runtime: JSON, the wire, tool calls, forking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Otherwise R's headers define short names. */
#define R_NO_REMAP
#define STRICT_R_HEADERS
#include <R.h>
#include <Rinternals.h>

#include "inside/lib/wire_json.h"

#define R_WIRE 3

/* Values to JSON and back (docs/values.md). */

/* Appends the JSON form of v; NULL, or what is wrong. text: an R function that prints a value
 * without a data form. limit: bytes of *b. */
const char *encode_value(struct bytes *b, SEXP v, SEXP text, size_t limit);
/* Decodes any checked JSON. The result is not protected. */
SEXP decode_value(struct json v);
SEXP decode_string(struct json v);              /* a CHARSXP */
SEXP decode_text(const char *text, size_t len); /* the same of UTF-8 that may contain NUL */
extern bool decode_refuses_nul;                 /* in the guest; otherwise NUL is shown as U+2400 */
/* In a client: what a hostile guest sends must stay data (classes.c, unwrap.c). */
extern bool decode_is_guarded;
/* Before a message; is_plain: without attributes, classes and language. */
void decode_begin(bool is_plain);
/* In a guest: keeps an object for later and returns its id (NULL: too many), and finds it again
 * (NULL: it is not here). */
extern const char *(*encode_hold)(SEXP v);
extern SEXP (*decode_held)(const char *id);
/* Base64 both ways. */
void base64_encode(struct bytes *b, const unsigned char *data, size_t len);
size_t base64_decode(struct json v, unsigned char *ret); /* ret NULL: only returns the size */

/* Instants: seconds since 1970, UTC. */
void instant_date(struct bytes *b, double days);
void instant_datetime(struct bytes *b, double seconds);
int instant_digits(double seconds);    /* of its fraction; -1: no text is exact */
double instant_unit(const char *name); /* seconds of a difftime's unit; 0: it is none */
bool instant_parse_date(struct json v, double *ret_days);
bool instant_parse_datetime(struct json v, double *ret_seconds);

/* The wire. */
void wire_say(const char *data, size_t len); /* whole lines */
bool wire_line(struct json *ret); /* the next message, valid until the next call; false: end of the
				     stream */
/* Asks the host for a descriptor: of a file for so many bytes, or (0) of the one with the
 * variables' binary columns. Negative: none, and ret_why says why. */
int wire_buffer(size_t bytes, char ret_why[96]);
void wire_interruptible(bool is_allowed); /* whether SIGINT may stop R code now */
void wire_begin(
	const char *id);    /* at the start of an execution: drops a SIGINT for an earlier one */
void wire_mute(bool is_on); /* discards what would be sent */
bool wire_idle(int ms);     /* whether nothing arrives for this long */
void wire_flush_all(void);  /* flushes all output; restores descriptors 1 and 2 */
void wire_mend(void);       /* restores descriptors 0, 1 and 2 for an execution */
void wire_renew(void);      /* in a forked session: drops the template's wire state */

SEXP wire_token(SEXP template); /* removes it from the environment */
SEXP wire_send(SEXP text);      /* one line */
SEXP wire_welcome(void);        /* its options; NULL: none came */
SEXP wire_call(SEXP name, SEXP args, SEXP max,
	       SEXP text);                       /* calls a tool: list(value) or list(error=) */
SEXP wire_encode(SEXP v, SEXP text, SEXP limit); /* JSON, or a list(why) */
SEXP wire_output(SEXP mime, SEXP data, SEXP name);
SEXP wire_stdin(SEXP path);
SEXP wire_flush(void);
SEXP wire_interrupts(SEXP allowed);
SEXP wire_program(SEXP begins, SEXP has_timer);
SEXP wire_readline(void);
SEXP wire_quote(SEXP text); /* as a JSON string */
SEXP wire_fits(
	SEXP args,
	SEXP plain); /* whether every argument of a tool is plain and of a type that it takes */

/* A template's wait: returns in each new session, after sending its hello (head, token, tail). */
SEXP fork_serve(SEXP library, SEXP head, SEXP tail);
