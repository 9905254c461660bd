/* inside/guests/r/r_array.c - matrices and arrays: base64 of the elements in C order. */
#include <string.h>

#include "inside/guests/r/encode.h"

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

void encode_array(struct encoder *e, SEXP v, SEXP dim)
{
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
	SEXP names = Rf_getAttrib(v, R_DimNamesSymbol);
	if (TYPEOF(names) == VECSXP)
		dimnames(e, names);
	bytes_char(e->b, '}');
}
