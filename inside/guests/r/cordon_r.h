/* inside/guests/r/cordon_r.h - what the R runtime does in C: JSON, the wire, tool calls, forking.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* R's headers define short names of their own without this. */
#define R_NO_REMAP
#define STRICT_R_HEADERS
#include <R.h>
#include <Rinternals.h>

#include "inside/lib/wire_json.h"

#define R_WIRE 3

/* Values to JSON and back (docs/values.md). */

/* Appends the form of v; NULL, or what is wrong with it. text is an R function that prints a value
 * that has no data form. limit: bytes of *b. */
const char *encode_value(struct bytes *b, SEXP v, SEXP text, size_t limit);
/* Any JSON that was checked. The result is protected by nobody. */
SEXP decode_value(struct json v);
SEXP decode_string(struct json v); /* a CHARSXP */
extern bool decode_refuses_nul;    /* in the guest; else U+2400 stands for it */
/* Base64 both ways. */
void base64_encode(struct bytes *b, const unsigned char *data, size_t len);
size_t base64_decode(struct json v, unsigned char *ret); /* ret may be NULL: the size alone */

/* Instants: seconds since 1970, UTC. */
void instant_date(struct bytes *b, double days);
void instant_datetime(struct bytes *b, double seconds);
bool instant_parse_date(struct json v, double *ret_days);
bool instant_parse_datetime(struct json v, double *ret_seconds);

/* The wire. */
void wire_say(const char *data, size_t len); /* whole lines */
bool wire_line(struct json *ret); /* the next message, until the next call; false at the end */
void wire_interruptible(
	bool is_allowed);   /* whether SIGINT may stop R code now; forgets an old one */
void wire_mute(bool is_on); /* what would be sent goes nowhere */
bool wire_idle(int ms);     /* whether nothing comes for so long */
void wire_flush_all(void);  /* what was printed; 1 and 2 are whole again */
void wire_mend(void);       /* 0, 1 and 2 are whole for an execution */
void wire_renew(void); /* in the session that was forked: nothing of the template's wire is left */

SEXP wire_token(SEXP template);                            /* takes it out of the environment */
SEXP wire_send(SEXP text);                                 /* one line */
SEXP wire_welcome(void);                                   /* its options; NULL: none came */
SEXP wire_call(SEXP name, SEXP args, SEXP max, SEXP text); /* a tool: list(value) or list(error=) */
SEXP wire_encode(SEXP v, SEXP text, SEXP limit);           /* JSON; or a list(why) */
SEXP wire_output(SEXP mime, SEXP data, SEXP name);
SEXP wire_stdin(SEXP path);
SEXP wire_flush(void);
SEXP wire_interrupts(SEXP allowed);
SEXP wire_quote(SEXP text); /* as a JSON string */

/* A template's wait: returns in each new session, after its hello (its parts around the token). */
SEXP fork_serve(SEXP library, SEXP head, SEXP tail);
