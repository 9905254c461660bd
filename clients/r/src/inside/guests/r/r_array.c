/* inside/guests/r/r_array.c - matrices and arrays, both ways: base64 of the elements in C order. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "inside/guests/r/decode.h"
#include "inside/guests/r/r_columns.h"

struct layout {
	const char *dtype;
	size_t width;
	bool as_double; /* integers or logicals with NA, which only doubles can represent */
};

static struct layout layout_of(SEXP v)
{
	if (TYPEOF(v) == REALSXP)
		return (struct layout){ "float64", 8, false };
	if (TYPEOF(v) == CPLXSXP)
		return (struct layout){ "complex128", 16, false };
	for (R_xlen_t i = 0; i < XLENGTH(v); i++)
		if (encode_is_missing(v, i))
			return (struct layout){ "float64", 8, true };
	if (TYPEOF(v) == LGLSXP)
		return (struct layout){ "bool", 1, false };
	return (struct layout){ "int32", 4, false };
}

static void put_one(SEXP v, R_xlen_t i, struct layout l, unsigned char *out)
{
	if (l.as_double) {
		double x = encode_is_missing(v, i) ? NA_REAL : (double)INTEGER(v)[i];
		memcpy(out, &x, 8);
	} else if (TYPEOF(v) == LGLSXP) {
		*out = (unsigned char)LOGICAL(v)[i];
	} else {
		memcpy(out, (const char *)DATAPTR_RO(v) + (size_t)i * l.width, l.width);
	}
}

/* In R the first index varies fastest, on the wire the last. */
static void in_c_order(SEXP v, SEXP dim, struct layout l, unsigned char *out)
{
	int rank = LENGTH(dim);
	for (R_xlen_t i = 0; i < XLENGTH(v); i++) {
		R_xlen_t rest = i, from = 0, step = XLENGTH(v);
		for (int d = rank - 1; d >= 0; d--) {
			R_xlen_t extent = INTEGER(dim)[d];
			step /= extent;
			from += rest % extent * step;
			rest /= extent;
		}
		put_one(v, from, l, out + (size_t)i * l.width);
	}
}

static void dimnames(struct encoder *e, SEXP names)
{
	bytes_text(e->b, ",\"dimnames\":[");
	for (int d = 0; d < LENGTH(names); d++) {
		bytes_text(e->b, d ? "," : "");
		if (TYPEOF(VECTOR_ELT(names, d)) == STRSXP)
			encode_strings(e, VECTOR_ELT(names, d));
		else
			bytes_text(e->b, "null");
	}
	bytes_char(e->b, ']');
}

/* As a binary column: in R's own order, and missing elements have a bit. */
static void put_column(struct encoder *e, SEXP v, SEXP dim)
{
	const char *dtype = TYPEOF(v) == REALSXP   ? "float64"
			    : TYPEOF(v) == CPLXSXP ? "complex128"
			    : TYPEOF(v) == LGLSXP  ? "bool"
						   : "int32";
	bytes_format(e->b, "{\"$\":\"array\",\"dtype\":\"%s\",\"order\":\"F\"", dtype);
	encode_shape(e, dim, "shape");
	bytes_text(e->b, ",\"v\":");
	columns_put(e, v, 1);
	SEXP names = encode_attribute(v, R_DimNamesSymbol);
	if (TYPEOF(names) == VECSXP)
		dimnames(e, names);
	bytes_char(e->b, '}');
}

void encode_array(struct encoder *e, SEXP v, SEXP dim)
{
	if (columns_takes(XLENGTH(v), 8) && encode_take(e, 1)) {
		put_column(e, v, dim);
		return;
	}
	struct layout l = layout_of(v);
	size_t n = (size_t)XLENGTH(v);
	if (!encode_take(e, 1))
		return;
	if ((double)n * (double)l.width * 4 / 3 > (double)e->limit) {
		encode_refuse(e);
		return;
	}
	const void *top = vmaxget();
	unsigned char *raw = (unsigned char *)R_alloc(n + 1, (int)l.width);
	in_c_order(v, dim, l, raw);
	bytes_format(e->b, "{\"$\":\"array\",\"dtype\":\"%s\"", l.dtype);
	encode_shape(e, dim, "shape");
	bytes_text(e->b, ",\"v\":\"");
	base64_encode(e->b, raw, n * l.width);
	bytes_char(e->b, '"');
	vmaxset(top);
	SEXP names = encode_attribute(v, R_DimNamesSymbol);
	if (TYPEOF(names) == VECSXP)
		dimnames(e, names);
	if (l.as_double)
		bytes_format(e->b, ",\"mode\":\"%s\"", TYPEOF(v) == LGLSXP ? "logical" : "integer");
	bytes_char(e->b, '}');
}

/* ---- from JSON */

static double raw_number(const unsigned char *p, char kind, size_t width)
{
	union {
		int8_t i1;
		uint8_t u1;
		int16_t i2;
		uint16_t u2;
		int32_t i4;
		uint32_t u4;
		int64_t i8;
		uint64_t u8;
		float f4;
		double f8;
	} x;
	memcpy(&x, p, width);
	if (kind == 'f')
		return width == 4 ? x.f4 : x.f8;
	if (kind == 'i')
		return width == 1 ? x.i1 : width == 2 ? x.i2 : width == 4 ? x.i4 : (double)x.i8;
	return width == 1 ? x.u1 : width == 2 ? x.u2 : width == 4 ? x.u4 : (double)x.u8;
}

static const struct dtype {
	const char *name;
	char kind;
	size_t width;
	SEXPTYPE type;
} dtypes[] = { { "bool", 'u', 1, LGLSXP },       { "int8", 'i', 1, INTSXP },
	       { "uint8", 'u', 1, INTSXP },      { "int16", 'i', 2, INTSXP },
	       { "uint16", 'u', 2, INTSXP },     { "int32", 'i', 4, INTSXP },
	       { "uint32", 'u', 4, REALSXP },    { "int64", 'i', 8, REALSXP },
	       { "uint64", 'u', 8, REALSXP },    { "float32", 'f', 4, REALSXP },
	       { "float64", 'f', 8, REALSXP },   { "complex64", 'f', 4, CPLXSXP },
	       { "complex128", 'f', 8, CPLXSXP } };

/* 64-bit integers that a double cannot represent: their digits. */
static bool has_wide(const unsigned char *raw, size_t n, const struct dtype *t)
{
	for (size_t i = 0; t->width == 8 && t->kind != 'f' && i < n; i++) {
		double x = raw_number(raw + i * 8, t->kind, 8);
		if (fabs(x) >= 9007199254740992.0)
			return true;
	}
	return false;
}

static void put_digits(SEXP out, R_xlen_t i, const unsigned char *p, const struct dtype *t)
{
	char digits[24];
	int64_t x;
	memcpy(&x, p, 8);
	if (t->kind == 'u')
		snprintf(digits, sizeof(digits), "%llu", (unsigned long long)x);
	else
		snprintf(digits, sizeof(digits), "%lld", (long long)x);
	SET_STRING_ELT(out, i, Rf_mkChar(digits));
}

static void put_number(SEXP out, R_xlen_t i, const unsigned char *p, const struct dtype *t)
{
	double x = raw_number(p, t->kind, t->width);
	if (TYPEOF(out) == STRSXP) {
		put_digits(out, i, p, t);
	} else if (t->type == CPLXSXP) {
		COMPLEX(out)[i].r = x;
		COMPLEX(out)[i].i = raw_number(p + t->width, t->kind, t->width);
	} else if (t->type == REALSXP && TYPEOF(out) != REALSXP) {
		int whole = fabs(x) <= INT_MAX ? (int)x : NA_INTEGER;
		INTEGER(out)[i] = TYPEOF(out) == LGLSXP && whole != NA_INTEGER ? whole != 0 : whole;
	} else if (t->type == REALSXP && t->kind == 'f' && t->width == 8) {
		memcpy(&REAL(out)[i], p, 8); /* NA is a NaN with a payload */
	} else if (t->type == REALSXP) {
		REAL(out)[i] = x;
	} else {
		INTEGER(out)[i] = (int)x;
	}
}

/* From the wire's order (last index fastest) to R's. */
static void from_c_order(SEXP out, SEXP dim, const unsigned char *raw, const struct dtype *t)
{
	size_t n = (size_t)XLENGTH(out), width = t->width * (t->type == CPLXSXP ? 2 : 1);
	for (size_t i = 0; i < n; i++) {
		size_t rest = i, to = 0, step = n;
		for (int d = LENGTH(dim) - 1; d >= 0; d--) {
			size_t extent = (size_t)INTEGER(dim)[d];
			step /= extent;
			to += rest % extent * step;
			rest /= extent;
		}
		put_number(out, (R_xlen_t)to, raw + i * width, t);
	}
}

static void set_dimnames(SEXP out, SEXP dim, struct json names)
{
	const char *at = NULL;
	struct json key, item;
	SEXP all = PROTECT(Rf_allocVector(VECSXP, LENGTH(dim)));
	for (int d = 0; json_each(names, &at, &key, &item); d++)
		if (json_kind(item) == '[' && decode_count(item) == INTEGER(dim)[d])
			SET_VECTOR_ELT(all, d, decode_strings(item));
	Rf_setAttrib(out, R_DimNamesSymbol, all);
	UNPROTECT(1);
}

/* Doubles can stand for integers and logicals of R's with NA among them. */
static SEXPTYPE type_of(struct json v, const struct dtype *t)
{
	struct json mode = json_get(v, "mode");
	if (t->type == REALSXP && t->kind == 'f' && json_is(mode, "integer"))
		return INTSXP;
	return t->type == REALSXP && t->kind == 'f' && json_is(mode, "logical") ? LGLSXP : t->type;
}

/* The dimensions, and what follows from them. */
static void set_dim(SEXP out, SEXP dim, struct json names)
{
	if (LENGTH(dim) < 2)
		return;
	Rf_setAttrib(out, R_DimSymbol, dim);
	if (decode_count(names) == LENGTH(dim))
		set_dimnames(out, dim, names);
}

static SEXP dim_of(struct json v, R_xlen_t n)
{
	SEXP dim = R_NilValue;
	if (decode_dim(json_get(v, "shape"), n, &dim))
		return dim;
	if (decode_count(json_get(v, "shape")) && !decode_is_guarded)
		Rf_error("the shape of an array does not fit its elements");
	return Rf_ScalarInteger((int)n);
}

/* A binary column, in R's order if the form says so. */
static SEXP decode_column(struct json v)
{
	SEXP from = PROTECT(columns_take_array(json_get(v, "v"))), out = from;
	SEXP dim = PROTECT(dim_of(v, XLENGTH(from)));
	if (LENGTH(dim) > 1 && !json_is(json_get(v, "order"), "F")) {
		out = Rf_allocVector(TYPEOF(from), XLENGTH(from));
		columns_transpose(out, from, dim);
		PROTECT(out);
		if (TYPEOF(out) == STRSXP)
			decode_set_class(out, "bigint", NULL);
		UNPROTECT(1);
	}
	PROTECT(out);
	set_dim(out, dim, json_get(v, "dimnames"));
	UNPROTECT(3);
	return out;
}

SEXP array_decode(struct json v)
{
	if (columns_is_ref(json_get(v, "v")))
		return decode_column(v);
	struct json dtype = json_get(v, "dtype"), names = json_get(v, "dimnames");
	size_t k = 0;
	while (k < sizeof(dtypes) / sizeof(dtypes[0]) && !json_is(dtype, dtypes[k].name))
		k++;
	if (k == sizeof(dtypes) / sizeof(dtypes[0]))
		return decode_list(v);
	const struct dtype *t = &dtypes[k];
	size_t size = base64_decode(json_get(v, "v"), NULL);
	size_t n = size / (t->width * (t->type == CPLXSXP ? 2 : 1));
	const void *top = vmaxget();
	unsigned char *raw = (unsigned char *)R_alloc(size + 1, 1);
	base64_decode(json_get(v, "v"), raw);
	bool is_wide = has_wide(raw, n, t);
	SEXP out = PROTECT(Rf_allocVector(is_wide ? STRSXP : type_of(v, t), (R_xlen_t)n));
	SEXP dim = PROTECT(dim_of(v, (R_xlen_t)n));
	from_c_order(out, dim, raw, t);
	vmaxset(top);
	if (is_wide)
		decode_set_class(out, "bigint", NULL);
	set_dim(out, dim, names);
	UNPROTECT(2);
	return out;
}
