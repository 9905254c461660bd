/* inside/guests/r/encode.c - encodes R values as JSON, exactly (docs/values.md). */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside/guests/r/r_columns.h"

#define MAX_DEPTH 62
#define MAX_COUNT 1000000

void encode_refuse(struct encoder *e)
{
	snprintf(e->said, sizeof(e->said), "the value is too large (more than %zu bytes)",
		 e->limit);
	e->why = e->said;
}

bool encode_take(struct encoder *e, R_xlen_t n)
{
	if (e->why)
		return false;
	e->left -= (long)n;
	if (e->left < 0 || n > MAX_COUNT) {
		snprintf(e->said, sizeof(e->said), "the value has more than %d elements",
			 MAX_COUNT);
		e->why = e->said;
	} else if (e->b->len > e->limit) {
		encode_refuse(e);
	}
	return !e->why;
}

bool encode_is_deep(struct encoder *e, int depth)
{
	if (depth > MAX_DEPTH && !e->why) {
		snprintf(e->said, sizeof(e->said), "the value is nested deeper than %d levels",
			 MAX_DEPTH);
		e->why = e->said;
	}
	return e->why;
}

/* ---- scalars */

/* The shortest digits that give the same double, always with a point or an exponent. */
void encode_double(struct bytes *b, double x)
{
	char t[40];
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(t, sizeof(t), "%.*g", digits, x);
		if (strtod(t, NULL) == x)
			break;
	}
	bytes_text(b, t);
	if (!strpbrk(t, ".e"))
		bytes_text(b, ".0");
}

static const char *odd_double(double x)
{
	return isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

/* Inside a vector: NA is null, a value that is not finite is a string. */
void encode_element_double(struct bytes *b, double x)
{
	if (R_IsNA(x))
		bytes_text(b, "null");
	else if (!R_FINITE(x))
		bytes_format(b, "\"%s\"", odd_double(x));
	else
		encode_double(b, x);
}

void encode_string(struct bytes *b, SEXP s)
{
	const void *top = vmaxget();
	const char *t = Rf_getCharCE(s) == CE_BYTES ? CHAR(s) : Rf_translateCharUTF8(s);
	json_quote(b, t, strlen(t));
	vmaxset(top);
}

static void put_complex_part(struct bytes *b, double x)
{
	if (R_FINITE(x))
		encode_double(b, x);
	else if (R_IsNA(x))
		bytes_text(b, "null");
	else
		bytes_format(b, "{\"$\":\"float\",\"v\":\"%s\"}", odd_double(x));
}

static const char *type_name(SEXP v)
{
	switch (TYPEOF(v)) {
	case LGLSXP:
		return "logical";
	case INTSXP:
		return "int";
	case REALSXP:
		return "float";
	case CPLXSXP:
		return "complex";
	default:
		return "string";
	}
}

/* One element of a vector. */
void encode_element(struct bytes *b, SEXP v, R_xlen_t i)
{
	int x;
	switch (TYPEOF(v)) {
	case LGLSXP:
		x = LOGICAL(v)[i];
		bytes_text(b, x == NA_LOGICAL ? "null" : x ? "true" : "false");
		break;
	case INTSXP:
		x = INTEGER(v)[i];
		if (x == NA_INTEGER)
			bytes_text(b, "null");
		else
			bytes_format(b, "%d", x);
		break;
	case REALSXP:
		encode_element_double(b, REAL(v)[i]);
		break;
	case CPLXSXP:
		if (encode_is_missing(v, i)) {
			bytes_text(b, "null");
		} else {
			bytes_char(b, '[');
			encode_element_double(b, COMPLEX(v)[i].r);
			bytes_char(b, ',');
			encode_element_double(b, COMPLEX(v)[i].i);
			bytes_char(b, ']');
		}
		break;
	default:
		if (STRING_ELT(v, i) == NA_STRING)
			bytes_text(b, "null");
		else
			encode_string(b, STRING_ELT(v, i));
	}
}

bool encode_is_missing(SEXP v, R_xlen_t i)
{
	switch (TYPEOF(v)) {
	case LGLSXP:
		return LOGICAL(v)[i] == NA_LOGICAL;
	case INTSXP:
		return INTEGER(v)[i] == NA_INTEGER;
	case REALSXP:
		return R_IsNA(REAL(v)[i]);
	case CPLXSXP: /* one part can be missing alone */
		return R_IsNA(COMPLEX(v)[i].r) && R_IsNA(COMPLEX(v)[i].i);
	default:
		return STRING_ELT(v, i) == NA_STRING;
	}
}

static void scalar(struct encoder *e, SEXP v)
{
	struct bytes *b = e->b;
	if (encode_is_missing(v, 0)) {
		bytes_format(b, "{\"$\":\"na\",\"t\":\"%s\"}", type_name(v));
	} else if (TYPEOF(v) == REALSXP && !R_FINITE(REAL(v)[0])) {
		bytes_format(b, "{\"$\":\"float\",\"v\":\"%s\"}", odd_double(REAL(v)[0]));
	} else if (TYPEOF(v) == CPLXSXP) {
		bytes_text(b, "{\"$\":\"complex\",\"v\":[");
		put_complex_part(b, COMPLEX(v)[0].r);
		bytes_char(b, ',');
		put_complex_part(b, COMPLEX(v)[0].i);
		bytes_text(b, "]}");
	} else {
		encode_element(b, v, 0);
	}
}

/* ---- vectors */

void encode_strings(struct encoder *e, SEXP names)
{
	bytes_char(e->b, '[');
	for (R_xlen_t i = 0; i < XLENGTH(names) && !e->why; i++) {
		bytes_text(e->b, i ? "," : "");
		if (STRING_ELT(names, i) == NA_STRING)
			bytes_text(e->b, "null");
		else
			encode_string(e->b, STRING_ELT(names, i));
		if (i % 256 == 0)
			encode_take(e, 0);
	}
	bytes_char(e->b, ']');
}

SEXP encode_attribute(SEXP v, SEXP name)
{
	for (SEXP a = ATTRIB(v); a != R_NilValue; a = CDR(a))
		if (TAG(a) == name)
			return CAR(a);
	return R_NilValue;
}

static void names_field(struct encoder *e, SEXP v)
{
	SEXP names = encode_attribute(v, R_NamesSymbol);
	if (TYPEOF(names) == STRSXP) {
		bytes_text(e->b, ",\"names\":");
		encode_strings(e, names);
	}
}

void encode_shape(struct encoder *e, SEXP dim, const char *field)
{
	bytes_format(e->b, ",\"%s\":[", field);
	for (int i = 0; i < LENGTH(dim); i++)
		bytes_format(e->b, "%s%d", i ? "," : "", INTEGER(dim)[i]);
	bytes_char(e->b, ']');
}

void encode_vector(struct encoder *e, SEXP v, const char *type, encode_put put, const char *more)
{
	if (columns_vector(e, v, type, more) || !encode_take(e, XLENGTH(v)))
		return;
	bytes_format(e->b, "{\"$\":\"vec\",\"t\":\"%s\",\"v\":[", type);
	for (R_xlen_t i = 0; i < XLENGTH(v) && !e->why; i++) {
		bytes_text(e->b, i ? "," : "");
		put(e->b, v, i);
		if (i % 256 == 0)
			encode_take(e, 0);
	}
	bytes_char(e->b, ']');
	names_field(e, v);
	SEXP dim = encode_attribute(v, R_DimSymbol);
	if (TYPEOF(dim) == INTSXP)
		encode_shape(e, dim, "dim");
	bytes_text(e->b, more);
	bytes_char(e->b, '}');
}

/* ---- values without a data form */

const char *(*encode_hold)(SEXP v);

/* The language as an argument would be evaluated: it is quoted. */
SEXP encode_ask(SEXP function, SEXP v)
{
	int failed = 0;
	SEXP quoted = PROTECT(Rf_lang2(R_QuoteSymbol, v));
	SEXP call = PROTECT(Rf_lang2(function, quoted));
	SEXP out = R_tryEvalSilent(call, R_BaseEnv, &failed);
	UNPROTECT(2);
	return failed ? R_NilValue : out;
}

void encode_text_form(struct encoder *e, SEXP v, bool is_kept)
{
	SEXP class = PROTECT(Rf_getAttrib(v, R_ClassSymbol));
	SEXP text = PROTECT(encode_ask(e->text, v));
	const char *id = encode_hold && is_kept ? encode_hold(v) : NULL;
	if (id)
		bytes_format(e->b, "{\"$\":\"handle\",\"id\":\"%s\",\"class\":", id);
	else
		bytes_text(e->b, "{\"$\":\"repr\",\"class\":");
	if (TYPEOF(class) == STRSXP && LENGTH(class))
		encode_string(e->b, STRING_ELT(class, 0));
	else
		bytes_format(e->b, "\"%s\"",
			     Rf_isFunction(v) ? "function" : Rf_type2char(TYPEOF(v)));
	bytes_text(e->b, ",\"v\":");
	if (TYPEOF(text) == STRSXP && LENGTH(text) == 1)
		encode_string(e->b, STRING_ELT(text, 0));
	else
		bytes_text(e->b, "\"<object that cannot be printed>\"");
	bytes_char(e->b, '}');
	UNPROTECT(2);
	encode_take(e, 1);
}

/* ---- lists */

static bool plain_names(SEXP names)
{
	for (R_xlen_t i = 0; i < XLENGTH(names); i++) {
		const char *n = CHAR(STRING_ELT(names, i));
		if (!*n || !strcmp(n, "$") || STRING_ELT(names, i) == NA_STRING)
			return false;
	}
	return !Rf_any_duplicated(names, FALSE);
}

static void put_name(struct bytes *b, SEXP name)
{
	if (name == NA_STRING)
		bytes_text(b, "{\"$\":\"na\",\"t\":\"string\"}");
	else
		encode_string(b, name);
}

void encode_list(struct encoder *e, SEXP v, int depth)
{
	enum { ARRAY, OBJECT_OF_NAMES, MAP } form = ARRAY;
	static const char *const begin[] = { "[", "{", "{\"$\":\"map\",\"v\":[" };
	static const char *const end[] = { "]", "}", "]}" };
	SEXP names = encode_attribute(v, R_NamesSymbol);

	if (encode_is_deep(e, depth) || !encode_take(e, 1))
		return;
	if (TYPEOF(names) == STRSXP)
		form = plain_names(names) ? OBJECT_OF_NAMES : MAP;
	bytes_text(e->b, begin[form]);
	for (R_xlen_t i = 0; i < XLENGTH(v) && !e->why; i++) {
		bytes_text(e->b, i ? "," : "");
		bytes_text(e->b, form == MAP ? "[" : "");
		if (form != ARRAY) {
			put_name(e->b, STRING_ELT(names, i));
			bytes_char(e->b, form == MAP ? ',' : ':');
		}
		encode_any(e, VECTOR_ELT(v, i), depth + (form == MAP ? 3 : 1));
		bytes_text(e->b, form == MAP ? "]" : "");
	}
	bytes_text(e->b, end[form]);
}

/* ---- all of it */

void encode_raw(struct encoder *e, SEXP v)
{
	if (columns_takes(XLENGTH(v), 1) && encode_take(e, 1)) {
		bytes_text(e->b, "{\"$\":\"bytes\",\"v\":");
		columns_put(e, v, 1);
		bytes_char(e->b, '}');
		return;
	}
	if ((size_t)XLENGTH(v) > e->limit) {
		encode_refuse(e);
		return;
	}
	bytes_text(e->b, "{\"$\":\"bytes\",\"v\":\"");
	base64_encode(e->b, RAW(v), (size_t)XLENGTH(v));
	bytes_text(e->b, "\"}");
	encode_take(e, 1);
}

bool encode_is_atomic(SEXP v)
{
	int t = TYPEOF(v);
	return t == LGLSXP || t == INTSXP || t == REALSXP || t == CPLXSXP || t == STRSXP;
}

void encode_atomic(struct encoder *e, SEXP v, bool alone)
{
	SEXP dim = encode_attribute(v, R_DimSymbol);
	if (alone && TYPEOF(dim) == INTSXP && TYPEOF(v) != STRSXP) {
		encode_array(e, v, dim);
	} else if (alone && XLENGTH(v) == 1 && dim == R_NilValue &&
		   encode_attribute(v, R_NamesSymbol) == R_NilValue) {
		if (encode_take(e, 1))
			scalar(e, v);
	} else {
		encode_vector(e, v, type_name(v), encode_element, "");
	}
}

void encode_any(struct encoder *e, SEXP v, int depth)
{
	if (e->why)
		return;
	if (v == R_NilValue) {
		encode_take(e, 1);
		bytes_text(e->b, "null");
	} else if (ATTRIB(v) != R_NilValue || !encode_is_atomic(v) ||
		   (TYPEOF(v) == STRSXP && wrap_has_bytes(v))) {
		wrap_value(e, v, true, depth);
	} else {
		encode_atomic(e, v, true);
	}
}

const char *encode_value(struct bytes *b, SEXP v, SEXP text, size_t limit)
{
	static struct encoder e;
	e = (struct encoder){ .b = b, .limit = limit, .left = MAX_COUNT, .text = text };
	encode_any(&e, v, 1);
	encode_take(&e, 0);
	return e.why;
}
