/* inside/guests/r/frame.c - data frames, both ways. */
#include <string.h>

#include "inside/guests/r/decode.h"
#include "inside/guests/r/r_columns.h"

/* The rows of a column, as R's NROW() counts them. */
static R_xlen_t rows_of(SEXP v)
{
	SEXP dim = encode_attribute(v, R_DimSymbol);
	if (TYPEOF(dim) == INTSXP && LENGTH(dim))
		return INTEGER(dim)[0];
	if (TYPEOF(v) == VECSXP && Rf_inherits(v, "data.frame"))
		return XLENGTH(Rf_getAttrib(v, R_RowNamesSymbol));
	if (TYPEOF(v) == VECSXP && Rf_inherits(v, "POSIXlt"))
		return XLENGTH(v) ? XLENGTH(VECTOR_ELT(v, 0)) : 0;
	return Rf_isVector(v) ? XLENGTH(v) : -1;
}

bool frame_is_sound(SEXP v)
{
	SEXP names = encode_attribute(v, R_NamesSymbol);
	SEXP stored = encode_attribute(v, R_RowNamesSymbol);
	if (TYPEOF(v) != VECSXP || TYPEOF(names) != STRSXP || XLENGTH(names) != XLENGTH(v) ||
	    (TYPEOF(stored) != INTSXP && TYPEOF(stored) != STRSXP))
		return false;
	R_xlen_t rows = XLENGTH(Rf_getAttrib(v, R_RowNamesSymbol));
	for (R_xlen_t i = 0; i < XLENGTH(v); i++)
		if (rows_of(VECTOR_ELT(v, i)) != rows)
			return false;
	return true;
}

/* A column is always a vector, factor or list. */
static void put_column(struct encoder *e, SEXP v, int depth)
{
	if (encode_is_atomic(v) && TYPEOF(encode_attribute(v, R_DimSymbol)) != INTSXP)
		wrap_value(e, v, false, depth);
	else
		encode_any(e, v, depth);
}

/* 1, 2, 3, … are not written. */
static bool is_automatic(SEXP rows)
{
	for (R_xlen_t i = 0; TYPEOF(rows) == INTSXP && i < XLENGTH(rows); i++)
		if (INTEGER(rows)[i] != i + 1)
			return false;
	return TYPEOF(rows) == INTSXP;
}

void frame_put(struct encoder *e, SEXP v, int depth)
{
	SEXP names = encode_attribute(v, R_NamesSymbol);
	SEXP rows = PROTECT(Rf_getAttrib(v, R_RowNamesSymbol)); /* expands the compact form */
	bytes_text(e->b, "{\"$\":\"frame\",\"names\":");
	encode_strings(e, names);
	bytes_text(e->b, ",\"columns\":[");
	columns_enter((double)LENGTH(v) * (double)XLENGTH(rows));
	for (int i = 0; i < LENGTH(v) && !e->why; i++) {
		bytes_text(e->b, i ? "," : "");
		put_column(e, VECTOR_ELT(v, i), depth + 2);
	}
	bytes_format(e->b, "],\"rows\":%lld", (long long)XLENGTH(rows));
	if (!is_automatic(rows)) {
		bytes_text(e->b, ",\"index\":");
		encode_vector(e, rows, TYPEOF(rows) == INTSXP ? "int" : "string", encode_element,
			      "");
	}
	columns_leave();
	bytes_char(e->b, '}');
	UNPROTECT(1);
}

/* ---- from JSON */

/* Unique row names without gaps, or R_NilValue. */
static SEXP row_names(struct json index, R_xlen_t rows)
{
	SEXP v = PROTECT(index.len ? decode_value(index) : R_NilValue);
	bool is_good = (TYPEOF(v) == STRSXP || TYPEOF(v) == INTSXP) && !OBJECT(v) &&
		       XLENGTH(v) == rows && !Rf_any_duplicated(v, FALSE);
	for (R_xlen_t i = 0; is_good && i < rows; i++)
		is_good = !encode_is_missing(v, i);
	if (is_good && encode_attribute(v, R_NamesSymbol) != R_NilValue)
		Rf_setAttrib(v, R_NamesSymbol, R_NilValue);
	UNPROTECT(1);
	return is_good ? v : R_NilValue;
}

/* A structured array of numpy has a shape: with one dimension it is a frame. */
static double rows_in(struct json v)
{
	const char *at = NULL;
	struct json key, item, shape = json_get(v, "shape");
	if (!shape.len)
		return decode_double(json_get(v, "rows"));
	return decode_count(shape) == 1 && json_each(shape, &at, &key, &item) ? decode_double(item)
									      : NA_REAL;
}

SEXP frame_decode(struct json v)
{
	SEXP out = PROTECT(decode_list(json_get(v, "columns")));
	SEXP names = PROTECT(decode_strings(json_get(v, "names")));
	double rows = rows_in(v);
	if (TYPEOF(out) == VECSXP && XLENGTH(names) == XLENGTH(out))
		Rf_setAttrib(out, R_NamesSymbol, names);
	if (!(rows >= 0 && rows <= INT_MAX)) {
		UNPROTECT(2);
		return out;
	}
	SEXP given = PROTECT(row_names(json_get(v, "index"), (R_xlen_t)rows));
	if (given == R_NilValue) {
		given = Rf_allocVector(INTSXP, 2); /* the compact form of 1..rows */
		INTEGER(given)[0] = NA_INTEGER;
		INTEGER(given)[1] = -(int)rows;
	}
	UNPROTECT(1);
	PROTECT(given);
	Rf_setAttrib(out, R_RowNamesSymbol, given);
	if (frame_is_sound(out))
		Rf_setAttrib(out, R_ClassSymbol, Rf_mkString("data.frame"));
	else
		Rf_setAttrib(out, R_RowNamesSymbol, R_NilValue);
	UNPROTECT(3);
	return out;
}
