/* inside/guests/r/unwrap.c - reads values with attributes, S4 objects and handles. An attribute
 * that does not fit its object is left out: nothing here fails because of what came. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "inside/guests/r/decode.h"
#include "inside/guests/r/encode.h"

SEXP (*decode_held)(const char *id);

/* ---- types that the form does not say */

static int64_t int64_of(struct json v)
{
	char digits[32] = { 0 };
	if (json_kind(v) == '{')
		v = json_get(v, "v"); /* a big integer */
	if (json_kind(v) != '0' || v.len >= sizeof(digits))
		return INT64_MIN;
	memcpy(digits, v.at, v.len);
	return strtoll(digits, NULL, 10);
}

/* Of a number, na, or vec: R's 64-bit integers are the bits of doubles. */
static SEXP int64_vector(struct json v)
{
	const char *at = NULL;
	struct json key, item, items = json_get(v, "v");
	bool is_one = json_kind(items) != '[';
	SEXP out = PROTECT(Rf_allocVector(REALSXP, is_one ? 1 : decode_count(items)));
	for (R_xlen_t i = 0; i < XLENGTH(out); i++) {
		if (is_one || !json_each(items, &at, &key, &item))
			item = v;
		int64_t x = int64_of(item);
		memcpy(&REAL(out)[i], &x, 8);
	}
	SEXP names = PROTECT(decode_strings(json_get(v, "names")));
	if (XLENGTH(names) == XLENGTH(out) && json_get(v, "names").len)
		Rf_setAttrib(out, R_NamesSymbol, names);
	SEXP dim = R_NilValue;
	if (decode_dim(json_get(v, "dim"), XLENGTH(out), &dim))
		Rf_setAttrib(out, R_DimSymbol, dim);
	decode_set_class(out, "integer64", NULL);
	UNPROTECT(2);
	return out;
}

/* Doubles to integers, with their attributes. */
static SEXP integers(SEXP v)
{
	if (TYPEOF(v) != REALSXP)
		return v;
	PROTECT(v);
	SEXP out = PROTECT(Rf_allocVector(INTSXP, XLENGTH(v)));
	for (R_xlen_t i = 0; i < XLENGTH(v); i++) {
		double x = REAL(v)[i];
		INTEGER(out)[i] = fabs(x) <= INT_MAX ? (int)lround(x) : NA_INTEGER;
	}
	Rf_copyMostAttrib(v, out);
	for (int k = 0; k < 2; k++) {
		SEXP name = k ? R_DimSymbol : R_NamesSymbol, a = encode_attribute(v, name);
		if (a != R_NilValue)
			Rf_setAttrib(out, name, a);
	}
	UNPROTECT(2);
	return out;
}

static SEXP expressions(SEXP v)
{
	SEXP out = PROTECT(Rf_allocVector(EXPRSXP, XLENGTH(v)));
	for (R_xlen_t i = 0; i < XLENGTH(v); i++)
		SET_VECTOR_ELT(out, i, VECTOR_ELT(v, i));
	SEXP names = encode_attribute(v, R_NamesSymbol);
	if (names != R_NilValue)
		Rf_setAttrib(out, R_NamesSymbol, names);
	UNPROTECT(1);
	return out;
}

static SEXP in_mode(SEXP v, struct json mode)
{
	PROTECT(v);
	if (json_is(mode, "integer"))
		v = integers(v);
	else if (json_is(mode, "expression") && TYPEOF(v) == VECSXP)
		v = expressions(v);
	else if (json_is(mode, "pairlist") && TYPEOF(v) == VECSXP)
		v = Rf_VectorToPairList(v);
	UNPROTECT(1);
	return v;
}

/* Texts that are not UTF-8: [[index, base64, is marked as bytes], …] */
static void take_bytes(SEXP v, struct json list)
{
	const char *at = NULL;
	struct json key, one, index, text, marked;
	while (TYPEOF(v) == STRSXP && json_each(list, &at, &key, &one)) {
		const char *in = NULL;
		if (!json_each(one, &in, &key, &index) || !json_each(one, &in, &key, &text) ||
		    !json_each(one, &in, &key, &marked) || json_kind(text) != '"')
			continue;
		double i = decode_double(index);
		size_t len = base64_decode(text, NULL);
		const void *top = vmaxget();
		unsigned char *raw = (unsigned char *)R_alloc(len + 1, 1);
		base64_decode(text, raw);
		if (i >= 0 && i < (double)XLENGTH(v) && len <= INT_MAX && !memchr(raw, 0, len))
			SET_STRING_ELT(
				v, (R_xlen_t)i,
				Rf_mkCharLenCE((const char *)raw, (int)len,
					       json_kind(marked) == 't' ? CE_BYTES : CE_NATIVE));
		vmaxset(top);
	}
}

/* ---- attributes */

enum pass { PASS_DIM, PASS_OTHERS, PASS_CLASS, PASS_ENVIRONMENT, PASSES };

static enum pass pass_of(struct json name)
{
	return json_is(name, "dim")            ? PASS_DIM
	       : json_is(name, "class")        ? PASS_CLASS
	       : json_is(name, ".Environment") ? PASS_ENVIRONMENT
					       : PASS_OTHERS;
}

static bool is_dim(SEXP v, SEXP a)
{
	double cells = 1;
	if (TYPEOF(a) != INTSXP || !LENGTH(a))
		return false;
	for (int i = 0; i < LENGTH(a); i++) {
		if (INTEGER(a)[i] < 0) /* or NA */
			return false;
		cells *= INTEGER(a)[i];
	}
	return cells == (double)XLENGTH(v);
}

static bool is_dimnames(SEXP v, SEXP a)
{
	SEXP dim = encode_attribute(v, R_DimSymbol);
	if (TYPEOF(a) != VECSXP || TYPEOF(dim) != INTSXP || LENGTH(a) != LENGTH(dim))
		return false;
	for (int i = 0; i < LENGTH(a); i++) {
		SEXP one = VECTOR_ELT(a, i);
		if (one != R_NilValue && (TYPEOF(one) != STRSXP || LENGTH(one) != INTEGER(dim)[i]))
			return false;
	}
	return true;
}

static bool is_tsp(SEXP v, SEXP a)
{
	SEXP dim = encode_attribute(v, R_DimSymbol);
	double n = TYPEOF(dim) == INTSXP ? INTEGER(dim)[0] : (double)XLENGTH(v);
	if (TYPEOF(a) != REALSXP || LENGTH(a) != 3 || n < 1)
		return false;
	const double *t = REAL(a);
	return R_FINITE(t[0]) && R_FINITE(t[1]) && R_FINITE(t[2]) && t[2] > 0 &&
	       fabs(t[1] - t[0] - (n - 1) / t[2]) < 1e-6;
}

/* Printing would look for the file that they name. */
static bool is_source(const char *name)
{
	return !strcmp(name, "srcref") || !strcmp(name, "srcfile") || !strcmp(name, "wholeSrcref");
}

/* Whether R would take it for this object. */
static bool is_good(SEXP v, SEXP name, SEXP a)
{
	const char *n = CHAR(PRINTNAME(name));
	bool is_vector = Rf_isVector(v);
	if (name == R_NamesSymbol)
		return is_vector && TYPEOF(a) == STRSXP && XLENGTH(a) == XLENGTH(v);
	if (name == R_DimSymbol)
		return is_vector && is_dim(v, a);
	if (name == R_DimNamesSymbol)
		return is_dimnames(v, a);
	if (name == R_RowNamesSymbol)
		return TYPEOF(v) == VECSXP && (TYPEOF(a) == STRSXP || TYPEOF(a) == INTSXP);
	if (name == R_TspSymbol)
		return is_vector && is_tsp(v, a);
	if (!strcmp(n, "comment"))
		return TYPEOF(a) == STRSXP;
	return !is_source(n);
}

/* One that does not fit, or that a client must not have, is only told. */
static void set_class(SEXP v, SEXP class)
{
	bool is_class = TYPEOF(class) == STRSXP && LENGTH(class) > 0 && LENGTH(class) <= 64;
	if (is_class && classes_fit(v, class) && !(decode_is_guarded && classes_are_refused(class)))
		Rf_setAttrib(v, R_ClassSymbol, class);
	else if (is_class)
		Rf_setAttrib(v, Rf_install("guest_class"), class);
}

/* The workspace, for a formula that only computes; in a client no other is evaluated by surprise.
 */
static void set_environment(SEXP v, struct json value)
{
	SEXP env = R_GlobalEnv;
	if (!json_is(json_get(value, "$"), "env"))
		env = decode_value(value);
	else if (decode_is_guarded && !language_is_harmless(v))
		env = R_EmptyEnv;
	PROTECT(env);
	Rf_setAttrib(v, Rf_install(".Environment"), env);
	UNPROTECT(1);
}

static void set_attribute(SEXP v, struct json name, struct json value, enum pass pass)
{
	if (pass == PASS_ENVIRONMENT) {
		set_environment(v, value);
		return;
	}
	SEXP symbol = language_symbol(name);
	if (!symbol || symbol == R_MissingArg)
		return;
	SEXP a = PROTECT(decode_value(value));
	if (pass == PASS_DIM && TYPEOF(a) == REALSXP)
		a = integers(a);
	UNPROTECT(1);
	PROTECT(a);
	if (pass == PASS_CLASS)
		set_class(v, a);
	else if (a != R_NilValue && is_good(v, symbol, a))
		Rf_setAttrib(v, symbol, a);
	UNPROTECT(1);
}

static bool takes_attributes(SEXP v)
{
	return Rf_isVector(v) || TYPEOF(v) == LANGSXP || TYPEOF(v) == LISTSXP || TYPEOF(v) == S4SXP;
}

void unwrap_attributes(SEXP v, struct json attributes)
{
	if (!takes_attributes(v))
		return;
	for (int pass = 0; pass < PASSES; pass++) {
		const char *at = NULL;
		struct json key, pair, name, value;
		while (json_each(attributes, &at, &key, &pair)) {
			const char *in = NULL;
			if (json_each(pair, &in, &key, &name) &&
			    json_each(pair, &in, &key, &value) && json_kind(name) == '"' &&
			    (int)pass_of(name) == pass)
				set_attribute(v, name, value, (enum pass)pass);
		}
	}
}

SEXP unwrap_value(struct json v)
{
	struct json mode = json_get(v, "mode"), as = json_get(v, "as"), inner = json_get(v, "v");
	if (decode_is_plain)
		return decode_value(inner);
	SEXP out = json_is(mode, "int64") ? int64_vector(inner) : decode_value(as.len ? as : inner);
	out = PROTECT(in_mode(out, mode));
	if (TYPEOF(out) == LGLSXP && XLENGTH(out) == 1)
		out = Rf_duplicate(out); /* R has one TRUE for all */
	UNPROTECT(1);
	PROTECT(out);
	take_bytes(out, json_get(v, "bytes"));
	unwrap_attributes(out, json_get(v, "attr"));
	if (json_kind(json_get(v, "s4")) == 't' && Rf_isVector(out)) {
		SEXP class = encode_attribute(out, R_ClassSymbol);
		SEXP object = PROTECT(Rf_asS4(out, TRUE, 0));
		bool is_good = TYPEOF(class) == STRSXP && classes_fit_s4(object, class);
		UNPROTECT(1);
		if (is_good)
			out = object;
	}
	UNPROTECT(1);
	return out;
}

/* ---- S4 objects */

static SEXP slots_as_list(struct json slots)
{
	const char *at = NULL;
	struct json key, pair, name, value;
	R_xlen_t n = decode_count(slots), i = 0;
	SEXP out = PROTECT(Rf_allocVector(VECSXP, n)), names = PROTECT(Rf_allocVector(STRSXP, n));
	while (json_each(slots, &at, &key, &pair)) {
		const char *in = NULL;
		if (json_each(pair, &in, &key, &name) && json_each(pair, &in, &key, &value)) {
			SET_VECTOR_ELT(out, i, decode_value(value));
			SET_STRING_ELT(names, i,
				       json_kind(name) == '"' ? decode_string(name)
							      : R_BlankString);
		}
		i++;
	}
	Rf_setAttrib(out, R_NamesSymbol, names);
	UNPROTECT(2);
	return out;
}

static SEXP object_of(SEXP slots, SEXP class)
{
	SEXP names = encode_attribute(slots, R_NamesSymbol);
	SEXP out = PROTECT(Rf_allocS4Object());
	for (R_xlen_t i = 0; i < XLENGTH(slots); i++) {
		SEXP value = VECTOR_ELT(slots, i);
		if (!LENGTH(STRING_ELT(names, i)) || !decode_may_name())
			continue;
		SEXP name = Rf_installTrChar(STRING_ELT(names, i));
		if (name != R_ClassSymbol && name != R_NamesSymbol && name != R_DimSymbol &&
		    name != R_DimNamesSymbol && name != R_TspSymbol && name != R_RowNamesSymbol)
			R_do_slot_assign(out, name, value);
	}
	Rf_setAttrib(out, R_ClassSymbol, class);
	UNPROTECT(1);
	return out;
}

/* A list of the slots where the object would not be valid. */
SEXP unwrap_slots(struct json v)
{
	SEXP slots = PROTECT(slots_as_list(json_get(v, "slots")));
	SEXP class = PROTECT(decode_value(json_get(v, "class")));
	SEXP out = slots;
	if (decode_is_plain || TYPEOF(class) != STRSXP || LENGTH(class) != 1) {
		UNPROTECT(2);
		return out;
	}
	if (!decode_is_guarded || !classes_are_refused(class)) {
		SEXP object = PROTECT(object_of(slots, class));
		if (classes_fit_s4(object, class))
			out = object;
		UNPROTECT(1);
	}
	PROTECT(out);
	if (out == slots)
		Rf_setAttrib(out, Rf_install("guest_class"), class);
	UNPROTECT(3);
	return out;
}

/* ---- handles */

/* In a guest the object itself; in a client its text, with the id that names it. */
SEXP unwrap_handle(struct json v)
{
	struct json id = json_get(v, "id");
	if (json_kind(id) != '"' || id.len > 64)
		return decode_value(json_get(v, "v"));
	SEXP name = PROTECT(Rf_ScalarString(decode_string(id)));
	if (decode_held) {
		SEXP held = decode_held(CHAR(STRING_ELT(name, 0)));
		UNPROTECT(1);
		if (!held)
			Rf_error("the object of this handle is not here: its session was "
				 "restarted, or is another one");
		return held;
	}
	struct json text = json_get(v, "v"), class = json_get(v, "class");
	SEXP out = PROTECT(
		Rf_ScalarString(json_kind(text) == '"' ? decode_string(text) : R_BlankString));
	Rf_setAttrib(out, Rf_install("id"), name);
	SEXP type = PROTECT(
		Rf_ScalarString(json_kind(class) == '"' ? decode_string(class) : R_BlankString));
	Rf_setAttrib(out, Rf_install("type"), type);
	decode_set_class(out, "cordon_handle", NULL);
	UNPROTECT(3);
	return out;
}
