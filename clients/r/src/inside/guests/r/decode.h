/* inside/guests/r/decode.h - shared by the parts of the decoder. */
#pragma once

#include <limits.h>

#include "inside/guests/r/cordon_r.h"

extern bool decode_is_plain; /* a second try, after an error: without attributes and language */

double decode_double(struct json v);
R_xlen_t decode_count(struct json v);
SEXP decode_list(struct json v);
SEXP decode_strings(struct json v);
bool decode_may_name(void); /* counts a symbol; false: the value has too many */
void decode_set_class(SEXP v, const char *a, const char *b);
/* Fills *ret_dim (allocated by the caller); false: they are no dimensions of n elements. */
bool decode_dim(struct json v, R_xlen_t n, SEXP *ret);

SEXP array_decode(struct json v);
SEXP frame_decode(struct json v);
SEXP language_decode(struct json v);
SEXP language_symbol(struct json name); /* NULL: refused */
bool language_is_harmless(SEXP v);      /* whether its functions only compute */

/* unwrap.c: values with attributes, S4 objects, handles. */
SEXP unwrap_value(struct json v);
SEXP unwrap_slots(struct json v);
SEXP unwrap_handle(struct json v);
void unwrap_attributes(SEXP v, struct json attributes);
/* classes.c: whether an object is what its class says, and may have it in a client. */
bool classes_fit(SEXP v, SEXP class);
bool classes_are_refused(SEXP class);
bool classes_fit_s4(SEXP v, SEXP class);
