/* inside/guests/r/r_columns_in.c - see r_columns.h: binary columns as R's vectors. Doubles and
 * integers are read straight into the vector that the code gets. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside/guests/r/decode.h"
#include "inside/guests/r/r_columns.h"

static const struct type {
	const char *name;
	char kind; /* f, i, u, c or s */
	size_t width;
} types[] = {
	{ "float64", 'f', 8 },   { "float32", 'f', 4 }, { "int32", 'i', 4 },
	{ "int64", 'i', 8 },     { "int16", 'i', 2 },   { "int8", 'i', 1 },
	{ "uint8", 'u', 1 },     { "uint16", 'u', 2 },  { "uint32", 'u', 4 },
	{ "uint64", 'u', 8 },    { "bool8", 'u', 1 },   { "complex128", 'c', 16 },
	{ "complex64", 'c', 8 }, { "utf8", 's', 4 },    { "large_utf8", 's', 8 },
};

enum { TYPES = sizeof(types) / sizeof(types[0]) };

struct source {
	bool (*read)(void *arg, void *to, size_t len);
	void *arg;
	size_t at;
};

/* By column: its vector (doubles, integers, texts, else raw bytes), its validity (raw or NULL), its
 * type, and whether it was taken. */
static struct {
	SEXP vectors, validity;
	int *type;
	bool *is_used;
	bool is_again;
	R_xlen_t count;
} in;

void columns_drop(void)
{
	if (in.vectors) {
		for (R_xlen_t i = 0; i < in.count; i++) /* else a change of one would copy it */
			SET_VECTOR_ELT(in.vectors, i, R_NilValue);
		R_ReleaseObject(in.vectors);
		R_ReleaseObject(in.validity);
	}
	free(in.type);
	free(in.is_used);
	memset(&in, 0, sizeof(in));
}

static void get(struct source *s, void *to, size_t len)
{
	if (len && !s->read(s->arg, to, len))
		Rf_error("the binary columns are cut off");
	s->at += len;
}

/* To the place of the next part. They are in ascending order. */
static void go_to(struct source *s, struct json place)
{
	char gap[64];
	size_t at = json_number(place, 0);

	if (at < s->at)
		Rf_error("the binary columns are not in order");
	while (s->at < at)
		get(s, gap, at - s->at < sizeof(gap) ? at - s->at : sizeof(gap));
}

static SEXP raw_of(struct source *s, struct json place, size_t len)
{
	SEXP raw = PROTECT(Rf_allocVector(RAWSXP, (R_xlen_t)len));

	go_to(s, place);
	get(s, RAW(raw), len);
	UNPROTECT(1);
	return raw;
}

static bool is_there(SEXP validity, R_xlen_t i)
{
	return TYPEOF(validity) != RAWSXP || (RAW(validity)[i / 8] >> i % 8 & 1);
}

static SEXP load_texts(struct source *s, struct json c, R_xlen_t n, const struct type *t,
		       SEXP validity)
{
	SEXP offsets = PROTECT(raw_of(s, json_get(c, "offsets"), ((size_t)n + 1) * t->width));
	SEXP bytes =
		PROTECT(raw_of(s, json_get(c, "values"), json_number(json_get(c, "bytes"), 0)));
	SEXP out = PROTECT(Rf_allocVector(STRSXP, n));
	uint64_t from = 0, to = 0;

	for (R_xlen_t i = 0; i < n; i++, from = to) {
		to = 0;
		memcpy(&to, RAW(offsets) + (size_t)(i + 1) * t->width, t->width);
		if (to < from || to > (uint64_t)XLENGTH(bytes))
			Rf_error("the offsets of a binary column do not ascend");
		const char *text = (const char *)RAW(bytes) + from;
		size_t len = (size_t)(to - from);
		if (!is_there(validity, i))
			SET_STRING_ELT(out, i, NA_STRING);
		else if (len && memchr(text, 0, len))
			SET_STRING_ELT(out, i, decode_text(text, len));
		else
			SET_STRING_ELT(out, i, Rf_mkCharLenCE(text, (int)len, CE_UTF8));
	}
	UNPROTECT(3);
	return out;
}

static SEXP load_values(struct source *s, struct json c, R_xlen_t n, const struct type *t,
			SEXP validity)
{
	SEXPTYPE natural = t == &types[0] ? REALSXP : t == &types[2] ? INTSXP : RAWSXP;

	if (t->kind == 's')
		return load_texts(s, c, n, t, validity);
	if (natural == RAWSXP)
		return raw_of(s, json_get(c, "values"), (size_t)n * t->width);
	SEXP v = PROTECT(Rf_allocVector(natural, n));
	go_to(s, json_get(c, "values"));
	get(s, natural == REALSXP ? (void *)REAL(v) : (void *)INTEGER(v), (size_t)n * t->width);
	for (R_xlen_t i = 0; TYPEOF(validity) == RAWSXP && i < n; i++) {
		if (is_there(validity, i))
			continue;
		if (natural == REALSXP)
			REAL(v)[i] = NA_REAL;
		else
			INTEGER(v)[i] = NA_INTEGER;
	}
	UNPROTECT(1);
	return v;
}

static void load_column(struct source *s, struct json c, R_xlen_t at)
{
	R_xlen_t n = (R_xlen_t)json_number(json_get(c, "count"), 0);
	int k = 0;

	while (k < TYPES && !json_is(json_get(c, "type"), types[k].name))
		k++;
	if (k == TYPES)
		Rf_error("R has no form for a binary column of this type");
	SEXP validity = R_NilValue;
	if (json_get(c, "validity").len)
		validity = raw_of(s, json_get(c, "validity"), ((size_t)n + 7) / 8);
	SET_VECTOR_ELT(in.validity, at, validity);
	SET_VECTOR_ELT(in.vectors, at, load_values(s, c, n, &types[k], validity));
	in.type[at] = k;
}

void columns_load(struct json table, bool (*read)(void *arg, void *to, size_t len), void *arg)
{
	struct source s = { read, arg, 0 };
	struct json list = json_get(table, "columns"), key, c, end = json_get(table, "bytes");
	const char *at = NULL;
	R_xlen_t n = 0;

	columns_drop();
	while (json_each(list, &at, &key, &c))
		n++;
	in.type = malloc(((size_t)n + 1) * sizeof(*in.type));
	in.is_used = calloc((size_t)n + 1, sizeof(*in.is_used));
	if (!in.type || !in.is_used)
		Rf_error("no memory for a large value");
	in.count = n;
	R_PreserveObject(in.vectors = Rf_allocVector(VECSXP, n));
	R_PreserveObject(in.validity = Rf_allocVector(VECSXP, n));
	at = NULL;
	for (R_xlen_t i = 0; json_each(list, &at, &key, &c); i++)
		load_column(&s, c, i);
	go_to(&s, end);
}

bool columns_is_ref(struct json v)
{
	return json_kind(v) == '{' && json_get(v, "$buf").len > 0;
}

void columns_rewind(void)
{
	in.is_again = true;
	for (R_xlen_t i = 0; i < in.count; i++)
		in.is_used[i] = false;
}

/* Without the attributes that it may have got before an error. */
static SEXP bare_copy(SEXP v)
{
	SEXP out = PROTECT(Rf_allocVector(TYPEOF(v), XLENGTH(v)));
	size_t n = (size_t)XLENGTH(v);
	for (R_xlen_t i = 0; TYPEOF(v) == STRSXP && i < XLENGTH(v); i++)
		SET_STRING_ELT(out, i, STRING_ELT(v, i));
	if (n && TYPEOF(v) == REALSXP)
		memcpy(REAL(out), REAL(v), n * 8);
	else if (n && TYPEOF(v) == INTSXP)
		memcpy(INTEGER(out), INTEGER(v), n * 4);
	else if (n && TYPEOF(v) == RAWSXP)
		memcpy(RAW(out), RAW(v), n);
	UNPROTECT(1);
	return out;
}

/* The vector of a reference, and its type; it cannot be taken again. */
static SEXP claim(struct json ref, const struct type **ret_type, SEXP *ret_validity)
{
	R_xlen_t i = (R_xlen_t)json_number(json_get(ref, "$buf"), (unsigned long)in.count);

	if (i < 0 || i >= in.count || in.is_used[i])
		Rf_error("a binary column is missing or used twice");
	in.is_used[i] = true;
	*ret_type = &types[in.type[i]];
	*ret_validity = VECTOR_ELT(in.validity, i);
	return in.is_again ? bare_copy(VECTOR_ELT(in.vectors, i)) : VECTOR_ELT(in.vectors, i);
}

static int64_t integer_at(const unsigned char *p, const struct type *t)
{
	uint64_t x = 0;

	memcpy(&x, p, t->width);
	if (t->kind == 'i' && t->width < 8 && x >> (t->width * 8 - 1))
		x |= ~(uint64_t)0 << t->width * 8;
	return (int64_t)x;
}

static double double_at(const unsigned char *p, const struct type *t)
{
	float f;

	if (t->kind == 'f') {
		memcpy(&f, p, 4);
		return f;
	}
	int64_t x = integer_at(p, t);
	return t->kind == 'u' ? (double)(uint64_t)x : (double)x;
}

/* Raw numbers as doubles. */
static SEXP doubles(SEXP raw, const struct type *t, SEXP validity, double scale)
{
	R_xlen_t n = XLENGTH(raw) / (R_xlen_t)t->width;
	SEXP out = Rf_allocVector(REALSXP, n);

	for (R_xlen_t i = 0; i < n; i++)
		REAL(out)
	[i] = is_there(validity, i) ? double_at(RAW(raw) + (size_t)i * t->width, t) / scale
				    : NA_REAL;
	return out;
}

static SEXP digits(SEXP raw, const struct type *t, SEXP validity)
{
	R_xlen_t n = XLENGTH(raw) / 8;
	SEXP out = PROTECT(Rf_allocVector(STRSXP, n));
	char text[24];

	for (R_xlen_t i = 0; i < n; i++) {
		int64_t x = integer_at(RAW(raw) + (size_t)i * 8, t);
		snprintf(text, sizeof(text), t->kind == 'u' ? "%llu" : "%lld", (long long)x);
		SET_STRING_ELT(out, i, is_there(validity, i) ? Rf_mkChar(text) : NA_STRING);
	}
	Rf_setAttrib(out, R_ClassSymbol, Rf_mkString("bigint"));
	UNPROTECT(1);
	return out;
}

/* Raw integers: as R's if all fit, as doubles if those are exact, else as their digits. */
static SEXP integers(SEXP raw, const struct type *t, SEXP validity)
{
	R_xlen_t n = XLENGTH(raw) / (R_xlen_t)t->width;
	double most = 0;

	for (R_xlen_t i = 0; t->width >= 4 && i < n; i++) {
		double x = fabs(double_at(RAW(raw) + (size_t)i * t->width, t));
		if (x > most && is_there(validity, i))
			most = x;
	}
	if (most > 9007199254740992.0)
		return digits(raw, t, validity);
	if (most > INT32_MAX)
		return doubles(raw, t, validity, 1);
	SEXP out = Rf_allocVector(INTSXP, n);
	for (R_xlen_t i = 0; i < n; i++)
		INTEGER(out)
	[i] = is_there(validity, i) ? (int)integer_at(RAW(raw) + (size_t)i * t->width, t)
				    : NA_INTEGER;
	return out;
}

static SEXP truths(SEXP raw, SEXP validity)
{
	SEXP out = Rf_allocVector(LGLSXP, XLENGTH(raw));

	for (R_xlen_t i = 0; i < XLENGTH(raw); i++)
		LOGICAL(out)[i] = is_there(validity, i) ? RAW(raw)[i] != 0 : NA_LOGICAL;
	return out;
}

static SEXP complexes(SEXP raw, const struct type *t, SEXP validity)
{
	R_xlen_t n = XLENGTH(raw) / (R_xlen_t)t->width;
	SEXP out = Rf_allocVector(CPLXSXP, n);
	float pair[2];

	for (R_xlen_t i = 0; i < n; i++) {
		if (t->width == 16) {
			memcpy(&COMPLEX(out)[i], RAW(raw) + (size_t)i * 16, 16);
		} else {
			memcpy(pair, RAW(raw) + (size_t)i * 8, 8);
			COMPLEX(out)[i] = (Rcomplex){ .r = pair[0], .i = pair[1] };
		}
		if (!is_there(validity, i))
			COMPLEX(out)[i] = (Rcomplex){ .r = NA_REAL, .i = NA_REAL };
	}
	return out;
}

static double unit_of(struct json vec)
{
	struct json unit = json_get(vec, "unit");

	return json_is(unit, "ns")   ? 1e9
	       : json_is(unit, "us") ? 1e6
	       : json_is(unit, "ms") ? 1e3
				     : 1;
}

/* A guest can say anything. */
static SEXP or_empty(SEXP v, SEXPTYPE type)
{
	return (SEXPTYPE)TYPEOF(v) == type ? v : Rf_allocVector(type, 0);
}

static bool has_unit(const char *type)
{
	return !strcmp(type, "datetime") || !strcmp(type, "duration");
}

static SEXP numbers(SEXP v, const struct type *t, SEXP validity, bool is_int, double unit)
{
	if (t->kind == 'c')
		return complexes(v, t, validity);
	return is_int ? integers(v, t, validity) : doubles(v, t, validity, unit);
}

static SEXP converted(SEXP v, const struct type *t, SEXP validity, const char *type,
		      struct json vec)
{
	bool is_time = has_unit(type);

	if (TYPEOF(v) == INTSXP && (is_time || !strcmp(type, "date") || !strcmp(type, "float")))
		return Rf_coerceVector(v, REALSXP);
	if (!strcmp(type, "codes")) /* of a factor */
		return or_empty(v, INTSXP);
	if (!strcmp(type, "string"))
		return or_empty(v, STRSXP);
	if (TYPEOF(v) != RAWSXP || !strcmp(type, "bytes"))
		return is_time ? or_empty(v, REALSXP) : v;
	if (!strcmp(type, "logical") && t->kind != 'c')
		return truths(v, validity);
	return numbers(v, t, validity, !strcmp(type, "int"), is_time ? unit_of(vec) : 1);
}

SEXP columns_take(struct json ref, const char *type, struct json vec)
{
	const struct type *t = NULL;
	SEXP validity = R_NilValue, v = PROTECT(claim(ref, &t, &validity));

	PROTECT(validity);
	v = converted(v, t, validity, type, vec);
	UNPROTECT(2);
	return v;
}

SEXP columns_take_array(struct json ref)
{
	const struct type *t = NULL;
	SEXP validity = R_NilValue, v = PROTECT(claim(ref, &t, &validity));
	const char *type = t->kind == 'f'              ? "float"
			   : t->kind == 'c'            ? "complex"
			   : !strcmp(t->name, "bool8") ? "logical"
						       : "int";

	PROTECT(validity);
	v = converted(v, t, validity, type, (struct json){ 0 });
	UNPROTECT(2);
	return v;
}

/* A list whose elements came as a binary column. */
SEXP columns_list(struct json v)
{
	struct json ref = json_get(v, "v");
	if (!columns_is_ref(ref))
		return decode_value(ref);
	SEXP x = PROTECT(columns_take_array(ref));
	SEXP out = Rf_coerceVector(x, VECSXP);
	UNPROTECT(1);
	return out;
}

void columns_transpose(SEXP to, SEXP from, SEXP dim)
{
	R_xlen_t n = XLENGTH(from);
	size_t width = TYPEOF(from) == CPLXSXP ? 16 : TYPEOF(from) == REALSXP ? 8 : 4;
	for (R_xlen_t i = 0; i < n; i++) {
		R_xlen_t rest = i, at = 0, step = n;
		for (int d = LENGTH(dim) - 1; d >= 0; d--) {
			R_xlen_t extent = INTEGER(dim)[d];
			step /= extent;
			at += rest % extent * step;
			rest /= extent;
		}
		if (TYPEOF(from) == STRSXP)
			SET_STRING_ELT(to, at, STRING_ELT(from, i));
		else
			memcpy((char *)DATAPTR(to) + (size_t)at * width,
			       (const char *)DATAPTR_RO(from) + (size_t)i * width, width);
	}
}
