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

/* Counts n elements; false: a limit was exceeded, and e->why says which. */
bool encode_take(struct encoder *e, R_xlen_t n);
void encode_refuse(struct encoder *e); /* too large */
bool encode_is_missing(SEXP v, R_xlen_t i);
void encode_strings(struct encoder *e, SEXP names);
void encode_shape(struct encoder *e, SEXP dim, const char *field);
void encode_array(struct encoder *e, SEXP v, SEXP dim);

/* digits.c: vectors of class bigint. */
bool digits_are_narrow(SEXP v); /* whether they all fit in 64-bit JSON numbers */
void digits_put(struct bytes *b, SEXP v, R_xlen_t i);
void digits_put_big(struct bytes *b, SEXP v, R_xlen_t i); /* of any size */
void digits_list(struct encoder *e, SEXP v);
