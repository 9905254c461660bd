/* inside/guests/r/encode.h - shared by the parts of the encoder. */
#pragma once

#include "inside/guests/r/cordon_r.h"

struct encoder {
	struct bytes *b;
	size_t limit;
	long left;
	SEXP text; /* prints values without a data form */
	const char *why;
	char said[96];
};

typedef void (*encode_put)(struct bytes *b, SEXP v, R_xlen_t i);

/* Counts n elements; false: a limit was exceeded, and e->why says which. */
bool encode_take(struct encoder *e, R_xlen_t n);
void encode_refuse(struct encoder *e); /* too large */
bool encode_is_deep(struct encoder *e, int depth);
bool encode_is_atomic(SEXP v);
bool encode_is_missing(SEXP v, R_xlen_t i);
/* An attribute as it is stored: R's own function makes names of dimnames. */
SEXP encode_attribute(SEXP v, SEXP name);
SEXP encode_ask(SEXP function, SEXP v); /* NULL: it failed */

void encode_any(struct encoder *e, SEXP v, int depth);
void encode_double(struct bytes *b, double x);
void encode_element_double(struct bytes *b, double x);
void encode_element(struct bytes *b, SEXP v, R_xlen_t i);
void encode_string(struct bytes *b, SEXP s);
void encode_strings(struct encoder *e, SEXP names);
void encode_shape(struct encoder *e, SEXP dim, const char *field);
void encode_array(struct encoder *e, SEXP v, SEXP dim);
void encode_raw(struct encoder *e, SEXP v);
void encode_list(struct encoder *e, SEXP v, int depth);
/* What its attributes beyond names and dimensions say is left out; alone: not in a data frame. */
void encode_atomic(struct encoder *e, SEXP v, bool alone);
/* A vector whose elements put(v, i) writes; always in the vec form. more: further fields. */
void encode_vector(struct encoder *e, SEXP v, const char *type, encode_put put, const char *more);
void encode_text_form(struct encoder *e, SEXP v, bool is_kept); /* a handle if it is kept */

/* wrap.c: a value with all of its attributes. */
void wrap_value(struct encoder *e, SEXP v, bool alone, int depth);
void wrap_attributes(struct encoder *e, SEXP v, int depth); /* ,"attr":[…], if there are any */
bool wrap_has_bytes(SEXP v);                                /* texts that are not UTF-8 */

/* classed.c: vectors whose class has a form of its own. */
struct classed {
	const char *class, *type;
	bool is_exact_class; /* the class attribute needs no further form */
	encode_put put;
};
bool classed_find(SEXP v, struct classed *ret); /* false: it has none that keeps every bit */
bool classed_carries(SEXP v, const struct classed *c, SEXP name);
void classed_put(struct encoder *e, SEXP v, const struct classed *c, bool alone);
bool classed_is_factor(SEXP v); /* one that the factor form keeps */
void classed_put_factor(struct encoder *e, SEXP v);

/* frame.c */
bool frame_is_sound(SEXP v);
void frame_put(struct encoder *e, SEXP v, int depth);

/* language.c */
void language_put(struct encoder *e, SEXP v, int depth);

/* digits.c: vectors of class bigint. */
bool digits_are_digits(SEXP v); /* the code may have set the class itself */
bool digits_are_narrow(SEXP v); /* whether they all fit in 64-bit JSON numbers */
void digits_put(struct bytes *b, SEXP v, R_xlen_t i);
void digits_put_big(struct bytes *b, SEXP v, R_xlen_t i); /* of any size */
void digits_list(struct encoder *e, SEXP v);
