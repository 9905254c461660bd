/* inside/guests/r/encode.c - encodes R values as JSON, exactly (docs/values.md). */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside/guests/r/encode.h"

#define MAX_DEPTH 62
#define MAX_COUNT 1000000

static void any(struct encoder *e, SEXP v, int depth);

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

static bool deep(struct encoder *e, int depth)
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
static void put_double(struct bytes *b, double x)
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
static void put_element_double(struct bytes *b, double x)
{
	if (R_IsNA(x))
		bytes_text(b, "null");
	else if (!R_FINITE(x))
		bytes_format(b, "\"%s\"", odd_double(x));
	else
		put_double(b, x);
}

static void put_string(struct bytes *b, SEXP s)
{
	const void *top = vmaxget();
	const char *t = Rf_getCharCE(s) == CE_BYTES ? CHAR(s) : Rf_translateCharUTF8(s);
	json_quote(b, t, strlen(t));
	vmaxset(top);
}

static void put_complex_part(struct bytes *b, double x)
{
	if (R_FINITE(x))
		put_double(b, x);
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
static void put_element(struct bytes *b, SEXP v, R_xlen_t i)
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
		put_element_double(b, REAL(v)[i]);
		break;
	case CPLXSXP:
		if (R_IsNA(COMPLEX(v)[i].r)) {
			bytes_text(b, "null");
		} else {
			bytes_char(b, '[');
			put_element_double(b, COMPLEX(v)[i].r);
			bytes_char(b, ',');
			put_element_double(b, COMPLEX(v)[i].i);
			bytes_char(b, ']');
		}
		break;
	default:
		if (STRING_ELT(v, i) == NA_STRING)
			bytes_text(b, "null");
		else
			put_string(b, STRING_ELT(v, i));
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
	case CPLXSXP:
		return R_IsNA(COMPLEX(v)[i].r);
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
		put_element(b, v, 0);
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
			put_string(e->b, STRING_ELT(names, i));
		if (i % 256 == 0)
			encode_take(e, 0);
	}
	bytes_char(e->b, ']');
}

static void names_field(struct encoder *e, SEXP v)
{
	SEXP names = Rf_getAttrib(v, R_NamesSymbol);
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

/* A vector whose elements put(v, i) writes; always in the vec form. */
static void vector(struct encoder *e, SEXP v, const char *type,
		   void (*put)(struct bytes *b, SEXP v, R_xlen_t i))
{
	if (!encode_take(e, XLENGTH(v)))
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
	SEXP dim = Rf_getAttrib(v, R_DimSymbol);
	if (TYPEOF(dim) == INTSXP)
		encode_shape(e, dim, "dim");
	bytes_char(e->b, '}');
}

/* ---- classes */

static double number_at(SEXP v, R_xlen_t i)
{
	if (TYPEOF(v) == INTSXP)
		return INTEGER(v)[i] == NA_INTEGER ? NA_REAL : INTEGER(v)[i];
	return REAL(v)[i];
}

static void put_date(struct bytes *b, SEXP v, R_xlen_t i)
{
	double x = number_at(v, i);
	if (!R_FINITE(x)) {
		bytes_text(b, "null");
		return;
	}
	bytes_char(b, '"');
	instant_date(b, x);
	bytes_char(b, '"');
}

static void put_datetime(struct bytes *b, SEXP v, R_xlen_t i)
{
	double x = number_at(v, i);
	if (!R_FINITE(x)) {
		bytes_text(b, "null");
		return;
	}
	bytes_char(b, '"');
	instant_datetime(b, x);
	bytes_char(b, '"');
}

static double unit_seconds(SEXP v)
{
	SEXP u = Rf_getAttrib(v, Rf_install("units"));
	const char *t = TYPEOF(u) == STRSXP && LENGTH(u) == 1 ? CHAR(STRING_ELT(u, 0)) : "secs";
	return !strcmp(t, "mins")    ? 60
	       : !strcmp(t, "hours") ? 3600
	       : !strcmp(t, "days")  ? 86400
	       : !strcmp(t, "weeks") ? 604800
				     : 1;
}

static void put_duration(struct bytes *b, SEXP v, R_xlen_t i)
{
	double x = number_at(v, i);
	put_element_double(b, R_IsNA(x) ? x : x * unit_seconds(v));
}

static void put_int64(struct bytes *b, SEXP v, R_xlen_t i)
{
	int64_t x;
	memcpy(&x, &REAL(v)[i], 8);
	if (x == INT64_MIN)
		bytes_text(b, "null");
	else
		bytes_format(b, "%lld", (long long)x);
}

static void factor(struct encoder *e, SEXP v)
{
	if (!encode_take(e, XLENGTH(v)))
		return;
	bytes_text(e->b, "{\"$\":\"factor\",\"levels\":");
	SEXP levels = Rf_getAttrib(v, R_LevelsSymbol);
	encode_strings(e, TYPEOF(levels) == STRSXP ? levels : Rf_allocVector(STRSXP, 0));
	bytes_text(e->b, ",\"v\":[");
	for (R_xlen_t i = 0; i < XLENGTH(v); i++) {
		bytes_text(e->b, i ? "," : "");
		put_element(e->b, v, i);
	}
	bytes_format(e->b, "],\"ordered\":%s}", Rf_inherits(v, "ordered") ? "true" : "false");
}

static void text_form(struct encoder *e, SEXP v)
{
	int failed = 0;
	SEXP class = PROTECT(Rf_getAttrib(v, R_ClassSymbol));
	SEXP call = PROTECT(Rf_lang2(e->text, v));
	/* Quoted, because a language object as an argument would be evaluated. */
	if (TYPEOF(v) == LANGSXP || TYPEOF(v) == SYMSXP || TYPEOF(v) == PROMSXP)
		SETCADR(call, Rf_lang2(Rf_install("quote"), v));
	SEXP text = PROTECT(R_tryEvalSilent(call, R_BaseEnv, &failed));
	bytes_text(e->b, "{\"$\":\"repr\",\"class\":");
	if (TYPEOF(class) == STRSXP && LENGTH(class))
		put_string(e->b, STRING_ELT(class, 0));
	else
		bytes_format(e->b, "\"%s\"",
			     Rf_isFunction(v) ? "function" : Rf_type2char(TYPEOF(v)));
	bytes_text(e->b, ",\"v\":");
	if (!failed && TYPEOF(text) == STRSXP && LENGTH(text) == 1)
		put_string(e->b, STRING_ELT(text, 0));
	else
		bytes_text(e->b, "\"<object that cannot be printed>\"");
	bytes_char(e->b, '}');
	UNPROTECT(3);
	encode_take(e, 1);
}

/* A column of a data frame: always a vector, factor or list. */
static void column(struct encoder *e, SEXP v, int depth);

static void frame(struct encoder *e, SEXP v, int depth)
{
	SEXP names = PROTECT(Rf_getAttrib(v, R_NamesSymbol));
	SEXP rows = PROTECT(Rf_getAttrib(v, R_RowNamesSymbol)); /* expands the compact form */
	bytes_text(e->b, "{\"$\":\"frame\",\"names\":");
	encode_strings(e, TYPEOF(names) == STRSXP ? names : PROTECT(Rf_allocVector(STRSXP, 0)));
	if (TYPEOF(names) != STRSXP)
		UNPROTECT(1);
	bytes_text(e->b, ",\"columns\":[");
	for (int i = 0; i < LENGTH(v) && !e->why; i++) {
		bytes_text(e->b, i ? "," : "");
		column(e, VECTOR_ELT(v, i), depth + 2);
	}
	bytes_format(e->b, "],\"rows\":%lld", (long long)XLENGTH(rows));
	if (TYPEOF(rows) == STRSXP) {
		bytes_text(e->b, ",\"index\":");
		vector(e, rows, "string", put_element);
	}
	bytes_char(e->b, '}');
	UNPROTECT(2);
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

static void list(struct encoder *e, SEXP v, int depth)
{
	SEXP names = PROTECT(Rf_getAttrib(v, R_NamesSymbol));
	bool named = TYPEOF(names) == STRSXP, map = named && !plain_names(names);
	if (map)
		bytes_text(e->b, "{\"$\":\"map\",\"v\":[");
	else
		bytes_char(e->b, named ? '{' : '[');
	for (R_xlen_t i = 0; i < XLENGTH(v) && !e->why; i++) {
		bytes_text(e->b, i ? "," : "");
		bytes_text(e->b, map ? "[" : "");
		if (named) {
			put_string(e->b, STRING_ELT(names, i));
			bytes_char(e->b, map ? ',' : ':');
		}
		any(e, VECTOR_ELT(v, i), depth + (map ? 3 : 1));
		bytes_text(e->b, map ? "]" : "");
	}
	bytes_text(e->b, map ? "]}" : named ? "}" : "]");
	UNPROTECT(1);
}

/* ---- all of it */

static bool is_atomic(SEXP v)
{
	int t = TYPEOF(v);
	return t == LGLSXP || t == INTSXP || t == REALSXP || t == CPLXSXP || t == STRSXP;
}

static void raw(struct encoder *e, SEXP v)
{
	if ((size_t)XLENGTH(v) > e->limit) {
		encode_refuse(e);
		return;
	}
	bytes_text(e->b, "{\"$\":\"bytes\",\"v\":\"");
	base64_encode(e->b, RAW(v), (size_t)XLENGTH(v));
	bytes_text(e->b, "\"}");
	encode_take(e, 1);
}

struct class_form {
	const char *class, *type, *before, *after;
	void (*put)(struct bytes *b, SEXP v, R_xlen_t i);
};

static const struct class_form class_forms[] = {
	{ "Date", "date", "{\"$\":\"date\",\"v\":", "}", put_date },
	{ "POSIXct", "datetime", "{\"$\":\"datetime\",\"v\":", "}", put_datetime },
	{ "difftime", "duration", "{\"$\":\"duration\",\"v\":", "}", put_duration },
	{ "integer64", "int", "", "", put_int64 },
	{ "bigint", "int", "", "", digits_put },
};

/* The form for the vector's class, if its type matches; otherwise NULL. */
static const struct class_form *form_of(SEXP v)
{
	for (size_t i = 0; i < sizeof(class_forms) / sizeof(class_forms[0]); i++) {
		const struct class_form *f = &class_forms[i];
		bool words = f->put == digits_put, doubles = f->put == put_int64;
		bool fits = words ? TYPEOF(v) == STRSXP
				  : TYPEOF(v) == REALSXP || (!doubles && TYPEOF(v) == INTSXP);
		if (fits && Rf_inherits(v, f->class))
			return f;
	}
	return NULL;
}

static bool is_missing(SEXP v, const struct class_form *f)
{
	int64_t x;
	if (f->put != put_int64)
		return encode_is_missing(v, 0);
	memcpy(&x, &REAL(v)[0], 8);
	return x == INT64_MIN;
}

/* A vector whose class has its own form; false: it has none. */
static bool classed(struct encoder *e, SEXP v, bool alone)
{
	if (Rf_inherits(v, "factor") && TYPEOF(v) == INTSXP) {
		factor(e, v);
		return true;
	}
	const struct class_form *f = form_of(v);
	if (!f)
		return false;
	bool single = alone && XLENGTH(v) == 1 && Rf_getAttrib(v, R_NamesSymbol) == R_NilValue;
	if (single && is_missing(v, f)) {
		if (encode_take(e, 1))
			bytes_format(e->b, "{\"$\":\"na\",\"t\":\"%s\"}", f->type);
	} else if (f->put == digits_put && !single && !digits_are_narrow(v)) {
		digits_list(e, v);
	} else if (!single ||
		   (f->put != digits_put && f->put != put_int64 && !R_FINITE(number_at(v, 0)))) {
		vector(e, v, f->type, f->put);
	} else if (f->put == digits_put && encode_take(e, 1)) {
		digits_put_big(e->b, v, 0);
	} else if (encode_take(e, 1)) {
		bytes_text(e->b, f->before);
		f->put(e->b, v, 0);
		bytes_text(e->b, f->after);
	}
	return true;
}

static void atomic(struct encoder *e, SEXP v, bool alone)
{
	SEXP dim = Rf_getAttrib(v, R_DimSymbol);
	if (OBJECT(v) && classed(e, v, alone))
		return;
	if (alone && TYPEOF(dim) == INTSXP && TYPEOF(v) != STRSXP)
		encode_array(e, v, dim);
	else if (alone && XLENGTH(v) == 1 && Rf_getAttrib(v, R_NamesSymbol) == R_NilValue) {
		if (encode_take(e, 1))
			scalar(e, v);
	} else
		vector(e, v, type_name(v), put_element);
}

static void column(struct encoder *e, SEXP v, int depth)
{
	if (is_atomic(v) && TYPEOF(Rf_getAttrib(v, R_DimSymbol)) != INTSXP)
		atomic(e, v, false);
	else
		any(e, v, depth);
}

static bool is_data_list(SEXP v)
{
	return TYPEOF(v) == VECSXP &&
	       (!OBJECT(v) || Rf_inherits(v, "AsIs") || Rf_inherits(v, "simple.list"));
}

static void broken_down_time(struct encoder *e, SEXP v, int depth)
{
	int failed = 0;
	SEXP call = PROTECT(Rf_lang2(Rf_install("as.POSIXct"), v));
	SEXP ct = PROTECT(R_tryEvalSilent(call, R_BaseEnv, &failed));
	if (failed)
		text_form(e, v);
	else
		any(e, ct, depth);
	UNPROTECT(2);
}

static void generic(struct encoder *e, SEXP v, int depth)
{
	if (Rf_inherits(v, "data.frame"))
		frame(e, v, depth);
	else if (Rf_inherits(v, "POSIXlt"))
		broken_down_time(e, v, depth);
	else if (!is_data_list(v))
		text_form(e, v);
	else if (encode_take(e, 1))
		list(e, v, depth);
}

static void any(struct encoder *e, SEXP v, int depth)
{
	if (e->why || (TYPEOF(v) == VECSXP && deep(e, depth)))
		return;
	if (TYPEOF(v) == LISTSXP) {
		v = PROTECT(Rf_coerceVector(v, VECSXP));
		any(e, v, depth);
		UNPROTECT(1);
	} else if (v == R_NilValue) {
		encode_take(e, 1);
		bytes_text(e->b, "null");
	} else if (is_atomic(v) && !IS_S4_OBJECT(v) && !Rf_inherits(v, "connection")) {
		atomic(e, v, true);
	} else if (TYPEOF(v) == RAWSXP) {
		raw(e, v);
	} else if (TYPEOF(v) == VECSXP && !IS_S4_OBJECT(v)) {
		generic(e, v, depth);
	} else {
		text_form(e, v);
	}
}

const char *encode_value(struct bytes *b, SEXP v, SEXP text, size_t limit)
{
	static struct encoder e;
	e = (struct encoder){ .b = b, .limit = limit, .left = MAX_COUNT, .text = text };
	any(&e, v, 1);
	encode_take(&e, 0);
	return e.why;
}
