/* inside/guests/r/classed.c - vectors whose class has a form of its own: dates, times, durations,
 * 64-bit integers, digits, factors. A form is used only where it keeps every bit. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "inside/guests/r/r_columns.h"

#define DAYS_MAX 1e9

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

static const char *unit_of(SEXP v)
{
	SEXP u = encode_attribute(v, Rf_install("units"));
	return TYPEOF(u) == STRSXP && LENGTH(u) == 1 ? CHAR(STRING_ELT(u, 0)) : "";
}

static void put_duration(struct bytes *b, SEXP v, R_xlen_t i)
{
	double x = number_at(v, i);
	encode_element_double(b, R_IsNA(x) ? x : x * instant_unit(unit_of(v)));
}

static int64_t int64_at(SEXP v, R_xlen_t i)
{
	int64_t x;
	memcpy(&x, &REAL(v)[i], 8);
	return x;
}

static void put_int64(struct bytes *b, SEXP v, R_xlen_t i)
{
	if (int64_at(v, i) == INT64_MIN)
		bytes_text(b, "null");
	else
		bytes_format(b, "%lld", (long long)int64_at(v, i));
}

static const struct classed forms[] = {
	{ "Date", "date", false, put_date },
	{ "POSIXct", "datetime", false, put_datetime },
	{ "difftime", "duration", false, put_duration },
	{ "integer64", "int", false, put_int64 },
	{ "bigint", "int", false, digits_put },
};

/* ---- whether the form keeps every bit */

static bool keeps_element(double x, const struct classed *c, double unit)
{
	if (R_IsNA(x))
		return true;
	if (c->put == put_duration)
		return !R_FINITE(x) || x * unit / unit == x;
	if (c->put == put_date)
		return fabs(x) < DAYS_MAX && x == floor(x);
	return instant_digits(x) >= 0;
}

static bool keeps_numbers(SEXP v, const struct classed *c)
{
	double unit = c->put == put_duration ? instant_unit(unit_of(v)) : 1;
	if (unit == 0)
		return false;
	for (R_xlen_t i = 0; i < XLENGTH(v); i++)
		if (!keeps_element(number_at(v, i), c, unit))
			return false;
	return true;
}

static bool is_class(SEXP v, const char *a, const char *b)
{
	SEXP c = encode_attribute(v, R_ClassSymbol);
	return TYPEOF(c) == STRSXP && LENGTH(c) == (b ? 2 : 1) && ATTRIB(c) == R_NilValue &&
	       !strcmp(CHAR(STRING_ELT(c, 0)), a) && (!b || !strcmp(CHAR(STRING_ELT(c, 1)), b));
}

bool classed_find(SEXP v, struct classed *ret)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		const struct classed *f = &forms[i];
		bool words = f->put == digits_put, doubles = f->put == put_int64;
		bool fits = words ? TYPEOF(v) == STRSXP
				  : TYPEOF(v) == REALSXP || (!doubles && TYPEOF(v) == INTSXP);
		if (!fits || !Rf_inherits(v, f->class))
			continue;
		if (words ? !digits_are_digits(v) : !doubles && !keeps_numbers(v, f))
			return false;
		*ret = *f;
		ret->is_exact_class = f->put == put_datetime ? is_class(v, "POSIXct", "POSIXt")
							     : is_class(v, f->class, NULL);
		return true;
	}
	return false;
}

static bool is_one_text(SEXP v)
{
	return TYPEOF(v) == STRSXP && LENGTH(v) == 1 && STRING_ELT(v, 0) != NA_STRING &&
	       ATTRIB(v) == R_NilValue;
}

bool classed_carries(SEXP v, const struct classed *c, SEXP name)
{
	if (name == R_NamesSymbol || name == R_DimSymbol)
		return true; /* of a vec; dimensions make it one */
	if (name == R_ClassSymbol)
		return c->is_exact_class;
	if (c->put == put_datetime && !strcmp(CHAR(PRINTNAME(name)), "tzone"))
		return is_one_text(encode_attribute(v, name));
	return c->put == put_duration && !strcmp(CHAR(PRINTNAME(name)), "units") &&
	       is_one_text(encode_attribute(v, name));
}

/* ---- writing */

/* The zone of instants if it is not UTC (null: none is set), the unit of durations if not seconds.
 */
static void put_more(struct bytes *b, SEXP v, const struct classed *c)
{
	SEXP zone = encode_attribute(v, Rf_install("tzone"));
	if (c->put == put_datetime && zone == R_NilValue) {
		bytes_text(b, ",\"tz\":null");
	} else if (c->put == put_datetime && is_one_text(zone) &&
		   strcmp(CHAR(STRING_ELT(zone, 0)), "UTC") != 0) {
		bytes_text(b, ",\"tz\":");
		encode_string(b, STRING_ELT(zone, 0));
	} else if (c->put == put_duration && strcmp(unit_of(v), "secs") != 0) {
		bytes_format(b, ",\"units\":\"%s\"", unit_of(v));
	}
}

static void put_vector(struct encoder *e, SEXP v, const struct classed *c)
{
	struct bytes more = { 0 };
	put_more(&more, v, c);
	bytes_char(&more, 0);
	encode_vector(e, v, c->type, c->put, more.data);
	bytes_done(&more);
}

static void put_one(struct encoder *e, SEXP v, const struct classed *c)
{
	bool is_number = c->put == put_int64;
	if (c->put == digits_put) {
		digits_put_big(e->b, v, 0);
		return;
	}
	if (!is_number)
		bytes_format(e->b, "{\"$\":\"%s\",\"v\":", c->type);
	c->put(e->b, v, 0);
	if (!is_number) {
		put_more(e->b, v, c);
		bytes_char(e->b, '}');
	}
}

static bool is_missing(SEXP v, const struct classed *c)
{
	return c->put == put_int64 ? int64_at(v, 0) == INT64_MIN : encode_is_missing(v, 0);
}

void classed_put(struct encoder *e, SEXP v, const struct classed *c, bool alone)
{
	bool words = c->put == digits_put;
	bool single = alone && XLENGTH(v) == 1 &&
		      encode_attribute(v, R_NamesSymbol) == R_NilValue &&
		      encode_attribute(v, R_DimSymbol) == R_NilValue;
	if (single && is_missing(v, c)) {
		if (encode_take(e, 1)) {
			bytes_format(e->b, "{\"$\":\"na\",\"t\":\"%s\"", c->type);
			put_more(e->b, v, c);
			bytes_char(e->b, '}');
		}
	} else if (words && !single && !digits_are_narrow(v)) {
		digits_list(e, v);
	} else if (!single || (!words && c->put != put_int64 && !R_FINITE(number_at(v, 0)))) {
		put_vector(e, v, c);
	} else if (encode_take(e, 1)) {
		put_one(e, v, c);
	}
}

/* ---- factors */

static bool is_texts(SEXP v)
{
	return TYPEOF(v) == STRSXP && ATTRIB(v) == R_NilValue;
}

bool classed_is_factor(SEXP v)
{
	SEXP levels = encode_attribute(v, R_LevelsSymbol);
	if (TYPEOF(v) != INTSXP || !Rf_inherits(v, "factor") || !is_texts(levels))
		return false;
	for (R_xlen_t i = 0; i < XLENGTH(v); i++)
		if (INTEGER(v)[i] != NA_INTEGER &&
		    (INTEGER(v)[i] < 1 || INTEGER(v)[i] > LENGTH(levels)))
			return false;
	return true;
}

void classed_put_factor(struct encoder *e, SEXP v)
{
	bool is_column = columns_takes(XLENGTH(v), 4);
	if (!encode_take(e, is_column ? 1 : XLENGTH(v)))
		return;
	bytes_text(e->b, "{\"$\":\"factor\",\"levels\":");
	encode_strings(e, encode_attribute(v, R_LevelsSymbol));
	bytes_text(e->b, is_column ? ",\"v\":" : ",\"v\":[");
	if (is_column)
		columns_put(e, v, 1);
	for (R_xlen_t i = 0; !is_column && i < XLENGTH(v); i++) {
		bytes_text(e->b, i ? "," : "");
		encode_element(e->b, v, i);
	}
	bytes_format(e->b, "%s,\"ordered\":%s}", is_column ? "" : "]",
		     Rf_inherits(v, "ordered") ? "true" : "false");
}
