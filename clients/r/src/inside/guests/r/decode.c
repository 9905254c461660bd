/* inside/guests/r/decode.c - decodes JSON of the host to R values (docs/values.md). */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside/guests/r/decode.h"
#include "inside/guests/r/r_columns.h"

#define NAMES_MAX 20000 /* symbols of one value */

/* ---- scalars */

bool decode_refuses_nul, decode_is_guarded, decode_is_plain;
static long symbols;

bool decode_may_name(void)
{
	return !decode_is_guarded || ++symbols <= NAMES_MAX;
}

void decode_begin(bool is_plain)
{
	symbols = 0;
	decode_is_plain = is_plain;
}

/* An R string cannot contain NUL. For code it is refused rather than silently changed; in what a
 * client shows of an execution it becomes the symbol for NUL. */
static void replace_nul(struct bytes *b)
{
	struct bytes shown = { 0 };
	if (decode_refuses_nul)
		Rf_error("a text with a NUL has no form in R: it must come as bytes");
	for (size_t i = 0; i < b->len; i++)
		bytes_add(&shown, b->data[i] ? b->data + i : "\xe2\x90\x80", b->data[i] ? 1 : 3);
	bytes_done(b);
	*b = shown;
}

static SEXP text_of(struct bytes *b)
{
	if (b->len && memchr(b->data, 0, b->len))
		replace_nul(b);
	return Rf_mkCharLenCE(b->len ? b->data : "", (int)b->len, CE_UTF8);
}

SEXP decode_string(struct json v)
{
	static struct bytes b;
	b.len = 0;
	json_string(v, &b);
	return text_of(&b);
}

SEXP decode_text(const char *text, size_t len)
{
	static struct bytes b;
	b.len = 0;
	bytes_add(&b, text, len);
	return text_of(&b);
}

double decode_double(struct json v)
{
	char t[64];
	if (json_kind(v) == '"') { /* "nan", "inf", "-inf" in vectors */
		if (json_is(v, "nan"))
			return R_NaN;
		return json_is(v, "inf") ? R_PosInf : json_is(v, "-inf") ? R_NegInf : NA_REAL;
	}
	if (json_kind(v) == '{')
		return decode_double(json_get(v, "v"));
	if (!v.at || json_kind(v) != '0')
		return NA_REAL;
	if (v.len >= sizeof(t))
		return strtod(v.at, NULL);
	memcpy(t, v.at, v.len);
	t[v.len] = 0;
	return strtod(t, NULL);
}

static bool is_integer(struct json v)
{
	return !memchr(v.at, '.', v.len) && !memchr(v.at, 'e', v.len) && !memchr(v.at, 'E', v.len);
}

static SEXP big_integer(const char *digits, size_t len)
{
	SEXP s = PROTECT(Rf_ScalarString(Rf_mkCharLenCE(digits, (int)len, CE_UTF8)));
	Rf_setAttrib(s, R_ClassSymbol, Rf_mkString("bigint"));
	UNPROTECT(1);
	return s;
}

/* Whether a double represents the integer exactly. The neighbours of 2^53 round to it. */
static bool is_exact(struct json v, double x)
{
	return fabs(x) < 9007199254740992.0 ||
	       (fabs(x) == 9007199254740992.0 && v.at[v.len - 1] == '2');
}

/* An integer if it fits, a double if that is exact, else its digits. */
static SEXP decode_number(struct json v)
{
	double x = decode_double(v);
	if (!is_integer(v))
		return Rf_ScalarReal(x);
	if (fabs(x) <= INT32_MAX)
		return Rf_ScalarInteger((int)x);
	return is_exact(v, x) ? Rf_ScalarReal(x) : big_integer(v.at, v.len);
}

R_xlen_t decode_count(struct json v)
{
	const char *at = NULL;
	struct json key, item;
	R_xlen_t n = 0;
	while (json_each(v, &at, &key, &item))
		n++;
	return n;
}

/* ---- containers */

SEXP decode_list(struct json v)
{
	const char *at = NULL;
	struct json key, item;
	R_xlen_t i = 0;
	bool named = json_kind(v) == '{';
	SEXP out = PROTECT(Rf_allocVector(VECSXP, decode_count(v)));
	SEXP names = PROTECT(named ? Rf_allocVector(STRSXP, XLENGTH(out)) : R_NilValue);
	while (json_each(v, &at, &key, &item)) {
		SET_VECTOR_ELT(out, i, decode_value(item));
		if (named)
			SET_STRING_ELT(names, i, decode_string(key));
		i++;
	}
	if (named)
		Rf_setAttrib(out, R_NamesSymbol, names);
	UNPROTECT(2);
	return out;
}

static SEXP decode_name(struct json k)
{
	if (json_kind(k) == '"')
		return decode_string(k);
	return json_is(json_get(k, "$"), "na") ? NA_STRING
					       : Rf_mkCharLenCE(k.at, (int)k.len, CE_UTF8);
}

/* [[key, value], …]. A key that is not a string is shown as its JSON. */
static SEXP decode_map(struct json v)
{
	const char *at = NULL;
	struct json key, pair, k, x;
	R_xlen_t i = 0;
	struct json pairs = json_get(v, "v");
	SEXP out = PROTECT(Rf_allocVector(VECSXP, decode_count(pairs)));
	SEXP names = PROTECT(Rf_allocVector(STRSXP, XLENGTH(out)));
	while (json_each(pairs, &at, &key, &pair)) {
		const char *in = NULL;
		if (json_each(pair, &in, &key, &k) && json_each(pair, &in, &key, &x)) {
			SET_VECTOR_ELT(out, i, decode_value(x));
			SET_STRING_ELT(names, i, decode_name(k));
		}
		i++;
	}
	Rf_setAttrib(out, R_NamesSymbol, names);
	UNPROTECT(2);
	return out;
}

SEXP decode_strings(struct json v)
{
	const char *at = NULL;
	struct json key, item;
	R_xlen_t i = 0;
	SEXP out = PROTECT(Rf_allocVector(STRSXP, decode_count(v)));
	while (json_each(v, &at, &key, &item)) {
		if (json_kind(item) == '"')
			SET_STRING_ELT(out, i, decode_string(item));
		else
			SET_STRING_ELT(out, i,
				       json_kind(item) == 'n'
					       ? NA_STRING
					       : Rf_mkCharLenCE(item.at, (int)item.len, CE_UTF8));
		i++;
	}
	UNPROTECT(1);
	return out;
}

void decode_set_class(SEXP v, const char *a, const char *b)
{
	SEXP c = PROTECT(Rf_allocVector(STRSXP, b ? 2 : 1));
	SET_STRING_ELT(c, 0, Rf_mkChar(a));
	if (b)
		SET_STRING_ELT(c, 1, Rf_mkChar(b));
	Rf_setAttrib(v, R_ClassSymbol, c);
	UNPROTECT(1);
}

/* The zone that an instant's form names: UTC if it names none, none if it is null. */
static void set_zone(SEXP v, struct json zone)
{
	SEXP text = PROTECT(json_kind(zone) == '"' ? Rf_ScalarString(decode_string(zone))
						   : Rf_mkString("UTC"));
	if (json_kind(zone) != 'n')
		Rf_setAttrib(v, Rf_install("tzone"), text);
	UNPROTECT(1);
}

static void set_unit(SEXP v, struct json unit)
{
	SEXP text = PROTECT(json_kind(unit) == '"' ? Rf_ScalarString(decode_string(unit))
						   : Rf_mkString("secs"));
	double seconds = instant_unit(CHAR(STRING_ELT(text, 0)));
	if (seconds == 0)
		SET_STRING_ELT(text, 0, Rf_mkChar("secs"));
	for (R_xlen_t i = 0; seconds > 1 && i < XLENGTH(v); i++)
		if (!R_IsNA(REAL(v)[i]))
			REAL(v)[i] /= seconds;
	Rf_setAttrib(v, Rf_install("units"), text);
	UNPROTECT(1);
}

/* v: doubles; form: what they are of. */
static SEXP dated(SEXP v, const char *type, struct json form)
{
	PROTECT(v);
	if (!strcmp(type, "date")) {
		decode_set_class(v, "Date", NULL);
	} else if (!strcmp(type, "datetime")) {
		decode_set_class(v, "POSIXct", "POSIXt");
		set_zone(v, json_get(form, "tz"));
	} else {
		decode_set_class(v, "difftime", NULL);
		set_unit(v, json_get(form, "units"));
	}
	UNPROTECT(1);
	return v;
}

static double dated_number(struct json v, const char *form)
{
	double x = NA_REAL;
	if (!strcmp(form, "date"))
		return instant_parse_date(v, &x) ? x : NA_REAL;
	if (!strcmp(form, "datetime"))
		return instant_parse_datetime(v, &x) ? x : NA_REAL;
	return decode_double(v);
}

/* ---- vectors */

static void fill(SEXP out, R_xlen_t i, struct json item, const char *type)
{
	bool missing = json_kind(item) == 'n';
	switch (TYPEOF(out)) {
	case LGLSXP:
		LOGICAL(out)[i] = missing ? NA_LOGICAL : json_kind(item) == 't';
		break;
	case INTSXP:
		INTEGER(out)[i] = missing ? NA_INTEGER : (int)decode_double(item);
		break;
	case REALSXP:
		REAL(out)[i] = missing ? NA_REAL : dated_number(item, type);
		break;
	case CPLXSXP: {
		const char *at = NULL;
		struct json key, re = { 0 }, im = { 0 };
		if (json_each(item, &at, &key, &re))
			json_each(item, &at, &key, &im);
		COMPLEX(out)[i].r = missing ? NA_REAL : decode_double(re);
		COMPLEX(out)[i].i = missing ? NA_REAL : decode_double(im);
		break;
	}
	default:
		SET_STRING_ELT(out, i,
			       missing ? NA_STRING
			       : json_kind(item) == '0'
				       ? Rf_mkCharLenCE(item.at, (int)item.len, CE_UTF8)
				       : decode_string(item));
	}
}

/* If integers do not fit R's, the vector becomes doubles, or digits. */
static SEXPTYPE integers_type(struct json items)
{
	const char *at = NULL;
	struct json key, item;
	SEXPTYPE type = INTSXP;
	while (json_each(items, &at, &key, &item)) {
		double x = decode_double(item);
		if (json_kind(item) == '0' && !is_exact(item, x))
			return STRSXP;
		if (json_kind(item) != 'n' && (json_kind(item) != '0' || fabs(x) > INT32_MAX))
			type = REALSXP;
	}
	return type;
}

bool decode_dim(struct json v, R_xlen_t n, SEXP *ret)
{
	const char *at = NULL;
	struct json key, item;
	double cells = 1;
	bool is_good = json_kind(v) == '[' && decode_count(v) > 0;
	SEXP dim = PROTECT(Rf_allocVector(INTSXP, is_good ? decode_count(v) : 0));
	for (R_xlen_t i = 0; is_good && json_each(v, &at, &key, &item); i++) {
		double x = decode_double(item);
		is_good = x >= 0 && x <= INT_MAX; /* not NA */
		cells *= INTEGER(dim)[i] = is_good ? (int)x : 0;
	}
	UNPROTECT(1);
	if (is_good && cells == (double)n)
		*ret = dim;
	return is_good && cells == (double)n;
}

/* Only as many as there are elements. */
static void set_names(SEXP out, struct json v)
{
	struct json names = json_get(v, "names");
	bool is_column = columns_is_ref(names);

	if (json_kind(names) != '[' && !is_column)
		return;
	SEXP n = PROTECT(is_column ? columns_take(names, "string", v) : decode_strings(names));
	if (XLENGTH(n) == XLENGTH(out))
		Rf_setAttrib(out, R_NamesSymbol, n);
	UNPROTECT(1);
}

static SEXP decode_vec(struct json v)
{
	static const struct {
		const char *name;
		SEXPTYPE type;
	} types[] = { { "logical", LGLSXP },   { "int", INTSXP },      { "float", REALSXP },
		      { "string", STRSXP },    { "complex", CPLXSXP }, { "date", REALSXP },
		      { "datetime", REALSXP }, { "duration", REALSXP } };
	struct json items = json_get(v, "v"), t = json_get(v, "t"), dim = json_get(v, "dim");
	struct json key, item;
	size_t k = 0;
	while (k < sizeof(types) / sizeof(types[0]) && !json_is(t, types[k].name))
		k++;
	if (k == sizeof(types) / sizeof(types[0]))
		return decode_list(items);
	SEXPTYPE type = types[k].type;
	bool is_column = columns_is_ref(items);
	if (type == INTSXP && !is_column)
		type = integers_type(items);
	SEXP out = PROTECT(is_column ? columns_take(items, types[k].name, v)
				     : Rf_allocVector(type, decode_count(items)));
	const char *at = NULL;
	for (R_xlen_t i = 0; !is_column && json_each(items, &at, &key, &item); i++)
		fill(out, i, item, types[k].name);
	if (k >= 5)
		dated(out, types[k].name, v);
	else if (type == STRSXP && types[k].type == INTSXP)
		decode_set_class(out, "bigint", NULL);
	set_names(out, v);
	SEXP d = R_NilValue;
	if (decode_dim(dim, XLENGTH(out), &d))
		Rf_setAttrib(out, R_DimSymbol, d);
	UNPROTECT(1);
	return out;
}

/* *is_good becomes false if one is not the number of a level. */
static SEXP decode_codes(struct json v, int levels, bool *is_good)
{
	struct json key, item, items = json_get(v, "v");
	const char *at = NULL;

	if (columns_is_ref(items)) {
		SEXP codes = columns_take(items, "codes", v);
		for (R_xlen_t i = 0; i < XLENGTH(codes); i++) {
			int code = INTEGER(codes)[i];
			*is_good &= code == NA_INTEGER || (code >= 1 && code <= levels);
		}
		return codes;
	}
	SEXP codes = PROTECT(Rf_allocVector(INTSXP, decode_count(items)));
	for (R_xlen_t i = 0; json_each(items, &at, &key, &item); i++) {
		double code = decode_double(item);
		*is_good &= json_kind(item) == 'n' || (code >= 1 && code <= levels);
		INTEGER(codes)[i] = fabs(code) <= INT_MAX ? (int)code : NA_INTEGER;
	}
	UNPROTECT(1);
	return codes;
}

static SEXP decode_factor(struct json v)
{
	SEXP levels = PROTECT(decode_strings(json_get(v, "levels")));
	bool is_good = !Rf_any_duplicated(levels, FALSE);
	SEXP out = PROTECT(decode_codes(v, LENGTH(levels), &is_good));
	Rf_setAttrib(out, R_LevelsSymbol, levels);
	if (is_good && json_kind(json_get(v, "ordered")) == 't')
		decode_set_class(out, "ordered", "factor");
	else if (is_good)
		decode_set_class(out, "factor", NULL);
	UNPROTECT(2);
	return out;
}

/* ---- the tagged forms */

static SEXP missing_complex(void)
{
	SEXP out = Rf_allocVector(CPLXSXP, 1);
	COMPLEX(out)[0].r = COMPLEX(out)[0].i = NA_REAL;
	return out;
}

static SEXP decode_na(struct json v)
{
	static const char *const dates[] = { "date", "datetime", "duration" };
	struct json t = json_get(v, "t");
	for (size_t i = 0; i < 3; i++)
		if (json_is(t, dates[i]))
			return dated(Rf_ScalarReal(NA_REAL), dates[i], v);
	return json_is(t, "int")       ? Rf_ScalarInteger(NA_INTEGER)
	       : json_is(t, "float")   ? Rf_ScalarReal(NA_REAL)
	       : json_is(t, "string")  ? Rf_ScalarString(NA_STRING)
	       : json_is(t, "complex") ? missing_complex()
				       : Rf_ScalarLogical(NA_LOGICAL);
}

static SEXP decode_bytes(struct json v)
{
	struct json text = json_get(v, "v");
	if (columns_is_ref(text))
		return columns_take(text, "bytes", v);
	SEXP out = Rf_allocVector(RAWSXP, (R_xlen_t)base64_decode(text, NULL));
	base64_decode(text, RAW(out));
	return out;
}

static SEXP decode_int(struct json v)
{
	struct json text = json_get(v, "v");
	if (json_kind(text) != '"' || text.len < 3)
		return R_NilValue;
	struct json digits = { text.at + 1, text.len - 2 };
	size_t sign = *digits.at == '-';
	bool is_short = digits.len - sign <= 16 && digits.len > sign;
	for (size_t i = sign; is_short && i < digits.len; i++)
		is_short = digits.at[i] >= '0' && digits.at[i] <= '9';
	return is_short ? decode_number(digits) : big_integer(digits.at, digits.len);
}

static SEXP decode_decimal(struct json v)
{
	struct json text = json_get(v, "v");
	return Rf_ScalarReal(json_kind(text) == '"' ? strtod(text.at + 1, NULL)
						    : decode_double(text));
}

static SEXP decode_complex(struct json v)
{
	SEXP out = PROTECT(Rf_allocVector(CPLXSXP, 1));
	fill(out, 0, json_get(v, "v"), "complex");
	UNPROTECT(1);
	return out;
}

static SEXP decode_inner(struct json v)
{
	return decode_value(json_get(v, "v"));
}

/* ---- forms of other languages */

/* A Series of pandas: its index gives names. */
static SEXP decode_series(struct json v)
{
	SEXP out = PROTECT(decode_inner(v)), names = R_NilValue;
	struct json index = json_get(v, "index");
	if (index.len)
		names = decode_value(index);
	PROTECT(names);
	if (TYPEOF(names) == INTSXP || TYPEOF(names) == REALSXP)
		names = OBJECT(names) ? R_NilValue : Rf_coerceVector(names, STRSXP);
	UNPROTECT(1);
	PROTECT(names);
	if (TYPEOF(names) == STRSXP && Rf_isVector(out) && XLENGTH(names) == XLENGTH(out) &&
	    XLENGTH(out))
		Rf_setAttrib(out, R_NamesSymbol, names);
	UNPROTECT(2);
	return out;
}

/* The fields of an object: a list with their names; the name of its class is an attribute. */
static SEXP decode_record(struct json v)
{
	struct json class = json_get(v, "class");
	SEXP out = PROTECT(decode_list(json_get(v, "v")));
	SEXP names = PROTECT(decode_strings(json_get(v, "names")));
	if (TYPEOF(out) == VECSXP && XLENGTH(names) == XLENGTH(out))
		Rf_setAttrib(out, R_NamesSymbol, names);
	if (json_kind(class) == '"') {
		SEXP type = PROTECT(Rf_ScalarString(decode_string(class)));
		Rf_setAttrib(out, Rf_install("type"), type);
		UNPROTECT(1);
	}
	UNPROTECT(2);
	return out;
}

/* An error of JavaScript: a condition. */
static SEXP decode_error(struct json v)
{
	static const char *const fields[] = { "message", "call", "" };
	struct json message = json_get(v, "message"), class = json_get(v, "class");
	SEXP out = PROTECT(Rf_mkNamed(VECSXP, (const char **)(uintptr_t)fields));
	SET_VECTOR_ELT(out, 0,
		       Rf_ScalarString(json_kind(message) == '"' ? decode_string(message)
								 : R_BlankString));
	SEXP classes = PROTECT(Rf_allocVector(STRSXP, 3));
	SET_STRING_ELT(classes, 0, json_kind(class) == '"' ? decode_string(class) : R_BlankString);
	SET_STRING_ELT(classes, 1, Rf_mkChar("error"));
	SET_STRING_ELT(classes, 2, Rf_mkChar("condition"));
	if (decode_is_guarded && classes_are_refused(classes))
		SET_STRING_ELT(classes, 0, Rf_mkChar("simpleError"));
	Rf_setAttrib(out, R_ClassSymbol, classes);
	UNPROTECT(2);
	return out;
}

static SEXP decode_float(struct json v)
{
	return Rf_ScalarReal(decode_double(json_get(v, "v")));
}

SEXP decode_value(struct json v)
{
	static const struct {
		const char *tag;
		SEXP (*decode)(struct json v);
	} forms[] = { { "int", decode_int },         { "float", decode_float },
		      { "na", decode_na },           { "bytes", decode_bytes },
		      { "decimal", decode_decimal }, { "complex", decode_complex },
		      { "tuple", decode_inner },     { "set", decode_inner },
		      { "map", decode_map },         { "vec", decode_vec },
		      { "factor", decode_factor },   { "array", array_decode },
		      { "frame", frame_decode },     { "repr", decode_inner },
		      { "time", decode_inner },      { "attr", unwrap_value },
		      { "lang", language_decode },   { "s4", unwrap_slots },
		      { "handle", unwrap_handle },   { "env", decode_inner },
		      { "series", decode_series },   { "index", decode_inner },
		      { "record", decode_record },   { "struct", frame_decode },
		      { "error", decode_error },     { "list", columns_list } };
	static const char *const dates[] = { "date", "datetime", "duration" };
	switch (json_kind(v)) {
	case '"':
		return Rf_ScalarString(decode_string(v));
	case 't':
	case 'f':
		return Rf_ScalarLogical(*v.at == 't');
	case '0':
		return decode_number(v);
	case '[':
		return decode_list(v);
	case '{':
		break;
	default:
		return R_NilValue;
	}
	struct json tag = json_get(v, "$");
	if (!tag.len)
		return decode_list(v);
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (json_is(tag, forms[i].tag))
			return forms[i].decode(v);
	for (size_t i = 0; i < 3; i++)
		if (json_is(tag, dates[i]))
			return dated(Rf_ScalarReal(dated_number(json_get(v, "v"), dates[i])),
				     dates[i], v);
	return decode_list(v);
}
