/* inside/guests/r/decode.c - decodes JSON of the host to R values (docs/values.md). */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside/guests/r/cordon_r.h"

/* ---- scalars */

bool decode_refuses_nul;

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

SEXP decode_string(struct json v)
{
	static struct bytes b;
	b.len = 0;
	json_string(v, &b);
	if (b.len && memchr(b.data, 0, b.len))
		replace_nul(&b);
	return Rf_mkCharLenCE(b.len ? b.data : "", (int)b.len, CE_UTF8);
}

static double number(struct json v)
{
	char t[64];
	if (json_kind(v) == '"') { /* "nan", "inf", "-inf" in vectors */
		if (json_is(v, "nan"))
			return R_NaN;
		return json_is(v, "inf") ? R_PosInf : json_is(v, "-inf") ? R_NegInf : NA_REAL;
	}
	if (json_kind(v) == '{')
		return number(json_get(v, "v"));
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
	double x = number(v);
	if (!is_integer(v))
		return Rf_ScalarReal(x);
	if (fabs(x) <= INT32_MAX)
		return Rf_ScalarInteger((int)x);
	return is_exact(v, x) ? Rf_ScalarReal(x) : big_integer(v.at, v.len);
}

static R_xlen_t count(struct json v)
{
	const char *at = NULL;
	struct json key, item;
	R_xlen_t n = 0;
	while (json_each(v, &at, &key, &item))
		n++;
	return n;
}

/* ---- containers */

static SEXP decode_list(struct json v)
{
	const char *at = NULL;
	struct json key, item;
	R_xlen_t i = 0;
	bool named = json_kind(v) == '{';
	SEXP out = PROTECT(Rf_allocVector(VECSXP, count(v)));
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

/* [[key, value], …]. A key that is not a string is shown as its JSON. */
static SEXP decode_map(struct json v)
{
	const char *at = NULL;
	struct json key, pair, k, x;
	R_xlen_t i = 0;
	struct json pairs = json_get(v, "v");
	SEXP out = PROTECT(Rf_allocVector(VECSXP, count(pairs)));
	SEXP names = PROTECT(Rf_allocVector(STRSXP, XLENGTH(out)));
	while (json_each(pairs, &at, &key, &pair)) {
		const char *in = NULL;
		if (json_each(pair, &in, &key, &k) && json_each(pair, &in, &key, &x)) {
			SET_VECTOR_ELT(out, i, decode_value(x));
			SET_STRING_ELT(names, i,
				       json_kind(k) == '"'
					       ? decode_string(k)
					       : Rf_mkCharLenCE(k.at, (int)k.len, CE_UTF8));
		}
		i++;
	}
	Rf_setAttrib(out, R_NamesSymbol, names);
	UNPROTECT(2);
	return out;
}

static SEXP decode_strings(struct json v)
{
	const char *at = NULL;
	struct json key, item;
	R_xlen_t i = 0;
	SEXP out = PROTECT(Rf_allocVector(STRSXP, count(v)));
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

static void set_class(SEXP v, const char *a, const char *b)
{
	SEXP c = PROTECT(Rf_allocVector(STRSXP, b ? 2 : 1));
	SET_STRING_ELT(c, 0, Rf_mkChar(a));
	if (b)
		SET_STRING_ELT(c, 1, Rf_mkChar(b));
	Rf_setAttrib(v, R_ClassSymbol, c);
	UNPROTECT(1);
}

static SEXP dated(SEXP v, const char *form)
{
	PROTECT(v);
	if (!strcmp(form, "date")) {
		set_class(v, "Date", NULL);
	} else if (!strcmp(form, "datetime")) {
		set_class(v, "POSIXct", "POSIXt");
		Rf_setAttrib(v, Rf_install("tzone"), Rf_mkString("UTC"));
	} else {
		set_class(v, "difftime", NULL);
		Rf_setAttrib(v, Rf_install("units"), Rf_mkString("secs"));
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
	return number(v);
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
		INTEGER(out)[i] = missing ? NA_INTEGER : (int)number(item);
		break;
	case REALSXP:
		REAL(out)[i] = missing ? NA_REAL : dated_number(item, type);
		break;
	case CPLXSXP: {
		const char *at = NULL;
		struct json key, re = { 0 }, im = { 0 };
		if (json_each(item, &at, &key, &re))
			json_each(item, &at, &key, &im);
		COMPLEX(out)[i].r = number(re);
		COMPLEX(out)[i].i = missing ? NA_REAL : number(im);
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
		double x = number(item);
		if (json_kind(item) == '0' && !is_exact(item, x))
			return STRSXP;
		if (json_kind(item) != 'n' && (json_kind(item) != '0' || fabs(x) > INT32_MAX))
			type = REALSXP;
	}
	return type;
}

static SEXP decode_vec(struct json v)
{
	static const struct {
		const char *name;
		SEXPTYPE type;
	} types[] = { { "logical", LGLSXP },   { "int", INTSXP },      { "float", REALSXP },
		      { "string", STRSXP },    { "complex", CPLXSXP }, { "date", REALSXP },
		      { "datetime", REALSXP }, { "duration", REALSXP } };
	struct json items = json_get(v, "v"), t = json_get(v, "t"), names = json_get(v, "names");
	struct json key, item, dim = json_get(v, "dim");
	size_t k = 0;
	while (k < sizeof(types) / sizeof(types[0]) && !json_is(t, types[k].name))
		k++;
	if (k == sizeof(types) / sizeof(types[0]))
		return decode_list(items);
	SEXPTYPE type = types[k].type;
	if (type == INTSXP)
		type = integers_type(items);
	SEXP out = PROTECT(Rf_allocVector(type, count(items)));
	const char *at = NULL;
	for (R_xlen_t i = 0; json_each(items, &at, &key, &item); i++)
		fill(out, i, item, types[k].name);
	if (k >= 5)
		dated(out, types[k].name);
	else if (type == STRSXP && types[k].type == INTSXP)
		set_class(out, "bigint", NULL);
	if (json_kind(names) == '[') {
		SEXP n = PROTECT(decode_strings(names));
		if (XLENGTH(n) == XLENGTH(out))
			Rf_setAttrib(out, R_NamesSymbol, n);
		UNPROTECT(1);
	}
	if (json_kind(dim) == '[') {
		SEXP d = PROTECT(Rf_allocVector(INTSXP, count(dim)));
		double cells = 1;
		at = NULL;
		for (R_xlen_t i = 0; json_each(dim, &at, &key, &item); i++)
			cells *= INTEGER(d)[i] = (int)number(item);
		if (cells == (double)XLENGTH(out))
			Rf_setAttrib(out, R_DimSymbol, d);
		UNPROTECT(1);
	}
	UNPROTECT(1);
	return out;
}

static SEXP decode_factor(struct json v)
{
	struct json key, item, items = json_get(v, "v");
	const char *at = NULL;
	SEXP out = PROTECT(Rf_allocVector(INTSXP, count(items)));
	SEXP levels = PROTECT(decode_strings(json_get(v, "levels")));
	for (R_xlen_t i = 0; json_each(items, &at, &key, &item); i++)
		INTEGER(out)[i] = json_kind(item) == '0' ? (int)number(item) : NA_INTEGER;
	Rf_setAttrib(out, R_LevelsSymbol, levels);
	if (json_kind(json_get(v, "ordered")) == 't')
		set_class(out, "ordered", "factor");
	else
		set_class(out, "factor", NULL);
	UNPROTECT(2);
	return out;
}

static SEXP decode_frame(struct json v)
{
	struct json index = json_get(v, "index");
	SEXP out = PROTECT(decode_list(json_get(v, "columns")));
	SEXP names = PROTECT(decode_strings(json_get(v, "names")));
	int rows = (int)number(json_get(v, "rows"));
	SEXP row_names = R_NilValue;
	if (index.len)
		row_names = decode_value(index);
	PROTECT(row_names);
	if (TYPEOF(row_names) != STRSXP || XLENGTH(row_names) != rows ||
	    Rf_any_duplicated(row_names, FALSE)) {
		UNPROTECT(1);
		row_names = PROTECT(Rf_allocVector(INTSXP, 2)); /* the compact form of 1..rows */
		INTEGER(row_names)[0] = NA_INTEGER;
		INTEGER(row_names)[1] = -rows;
	}
	Rf_setAttrib(out, R_NamesSymbol, names);
	Rf_setAttrib(out, R_RowNamesSymbol, row_names);
	set_class(out, "data.frame", NULL);
	UNPROTECT(3);
	return out;
}

/* ---- arrays */

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

/* The dimensions; a single one if they do not match the number of elements. */
static SEXP decode_dim(struct json shape, size_t n)
{
	const char *at = NULL;
	struct json key, item;
	double cells = 1;
	SEXP dim = PROTECT(Rf_allocVector(INTSXP, count(shape)));
	for (int d = 0; json_each(shape, &at, &key, &item); d++)
		cells *= INTEGER(dim)[d] = (int)number(item);
	UNPROTECT(1);
	return cells == (double)n && LENGTH(dim) ? dim : Rf_ScalarInteger((int)n);
}

static void set_dimnames(SEXP out, SEXP dim, struct json names)
{
	const char *at = NULL;
	struct json key, item;
	SEXP all = PROTECT(Rf_allocVector(VECSXP, LENGTH(dim)));
	for (int d = 0; json_each(names, &at, &key, &item); d++)
		if (json_kind(item) == '[' && count(item) == INTEGER(dim)[d])
			SET_VECTOR_ELT(all, d, decode_strings(item));
	Rf_setAttrib(out, R_DimNamesSymbol, all);
	UNPROTECT(1);
}

static SEXP decode_array(struct json v)
{
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
	SEXP out = PROTECT(Rf_allocVector(is_wide ? STRSXP : t->type, (R_xlen_t)n));
	SEXP dim = PROTECT(decode_dim(json_get(v, "shape"), n));
	from_c_order(out, dim, raw, t);
	vmaxset(top);
	if (is_wide)
		set_class(out, "bigint", NULL);
	if (LENGTH(dim) > 1) {
		Rf_setAttrib(out, R_DimSymbol, dim);
		if (count(names) == LENGTH(dim))
			set_dimnames(out, dim, names);
	}
	UNPROTECT(2);
	return out;
}

/* ---- the tagged forms */

static SEXP decode_na(struct json v)
{
	static const char *const dates[] = { "date", "datetime", "duration" };
	struct json t = json_get(v, "t");
	for (size_t i = 0; i < 3; i++)
		if (json_is(t, dates[i]))
			return dated(Rf_ScalarReal(NA_REAL), dates[i]);
	return json_is(t, "int")      ? Rf_ScalarInteger(NA_INTEGER)
	       : json_is(t, "float")  ? Rf_ScalarReal(NA_REAL)
	       : json_is(t, "string") ? Rf_ScalarString(NA_STRING)
				      : Rf_ScalarLogical(NA_LOGICAL);
}

static SEXP decode_bytes(struct json v)
{
	struct json text = json_get(v, "v");
	SEXP out = Rf_allocVector(RAWSXP, (R_xlen_t)base64_decode(text, NULL));
	base64_decode(text, RAW(out));
	return out;
}

static SEXP decode_int(struct json v)
{
	struct json text = json_get(v, "v");
	return json_kind(text) == '"' ? big_integer(text.at + 1, text.len - 2) : R_NilValue;
}

static SEXP decode_decimal(struct json v)
{
	struct json text = json_get(v, "v");
	return Rf_ScalarReal(json_kind(text) == '"' ? strtod(text.at + 1, NULL) : number(text));
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

static SEXP decode_float(struct json v)
{
	return Rf_ScalarReal(number(json_get(v, "v")));
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
		      { "factor", decode_factor },   { "array", decode_array },
		      { "frame", decode_frame },     { "repr", decode_inner },
		      { "time", decode_inner } };
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
				     dates[i]);
	return decode_list(v);
}
