/* inside/guests/r/wrap.c - values with all of their attributes: the form that says most of a value,
 * and around it, where that is not all, {"$":"attr"} with the rest (docs/values.md). */
#include <string.h>

#include "inside/guests/r/encode.h"

enum kind {
	KIND_ATOMIC,
	KIND_CLASSED,
	KIND_FACTOR,
	KIND_FRAME,
	KIND_LIST,
	KIND_RAW,
	KIND_LANGUAGE
};

struct base {
	enum kind kind;
	struct classed classed;
	const char *mode; /* what the form does not say of the type */
};

/* Where code was read from: it would need files and environments. */
static bool is_source(SEXP name)
{
	const char *n = CHAR(PRINTNAME(name));
	return !strcmp(n, "srcref") || !strcmp(n, "srcfile") || !strcmp(n, "wholeSrcref");
}

/* ---- texts that are not UTF-8 */

static bool is_ascii(const char *t)
{
	unsigned char all = 0;
	for (; *t; t++)
		all |= (unsigned char)*t;
	return all < 128;
}

static bool is_odd_text(SEXP s)
{
	if (is_ascii(CHAR(s)) || s == NA_STRING)
		return false;
	cetype_t encoding = Rf_getCharCE(s);
	return encoding == CE_BYTES ||
	       (encoding == CE_NATIVE && !json_is_utf8(CHAR(s), (size_t)LENGTH(s)));
}

bool wrap_has_bytes(SEXP v)
{
	for (R_xlen_t i = 0; i < XLENGTH(v); i++)
		if (is_odd_text(STRING_ELT(v, i)))
			return true;
	return false;
}

/* [[index, base64, is marked as bytes], …] */
static void put_bytes(struct encoder *e, SEXP v)
{
	const char *comma = "";
	bytes_text(e->b, ",\"bytes\":[");
	for (R_xlen_t i = 0; i < XLENGTH(v) && !e->why; i++) {
		SEXP s = STRING_ELT(v, i);
		if (!is_odd_text(s))
			continue;
		bytes_format(e->b, "%s[%lld,\"", comma, (long long)i);
		base64_encode(e->b, (const unsigned char *)CHAR(s), (size_t)LENGTH(s));
		bytes_format(e->b, "\",%s]", Rf_getCharCE(s) == CE_BYTES ? "true" : "false");
		comma = ",";
		encode_take(e, 1);
	}
	bytes_char(e->b, ']');
}

/* ---- what the form carries */

static bool is_frame_class(SEXP v)
{
	SEXP c = encode_attribute(v, R_ClassSymbol);
	return LENGTH(c) == 1 && ATTRIB(c) == R_NilValue;
}

static bool is_factor_class(SEXP v)
{
	SEXP c = encode_attribute(v, R_ClassSymbol);
	int n = LENGTH(c);
	return ATTRIB(c) == R_NilValue && !strcmp(CHAR(STRING_ELT(c, n - 1)), "factor") &&
	       (n == 1 || (n == 2 && !strcmp(CHAR(STRING_ELT(c, 0)), "ordered")));
}

/* Of a matrix: texts without names of their own. */
static bool is_plain_dimnames(SEXP v, SEXP names)
{
	if (LENGTH(encode_attribute(v, R_DimSymbol)) < 2 || ATTRIB(names) != R_NilValue)
		return false;
	for (int i = 0; i < LENGTH(names); i++) {
		SEXP one = VECTOR_ELT(names, i);
		if (one != R_NilValue && (TYPEOF(one) != STRSXP || ATTRIB(one) != R_NilValue))
			return false;
	}
	return true;
}

static bool atomic_carries(SEXP v, SEXP name)
{
	SEXP dim = encode_attribute(v, R_DimSymbol);
	bool is_array = TYPEOF(dim) == INTSXP && TYPEOF(v) != STRSXP;
	if (name == R_NamesSymbol)
		return !is_array;
	if (name == R_DimSymbol)
		return !is_array || LENGTH(dim) > 1;
	return name == R_DimNamesSymbol && is_array &&
	       is_plain_dimnames(v, encode_attribute(v, name));
}

static bool carries(const struct base *b, SEXP v, SEXP name)
{
	if (is_source(name))
		return true;
	switch (b->kind) {
	case KIND_CLASSED:
		return classed_carries(v, &b->classed, name);
	case KIND_FACTOR:
		return name == R_LevelsSymbol || (name == R_ClassSymbol && is_factor_class(v));
	case KIND_FRAME:
		return name == R_NamesSymbol || name == R_RowNamesSymbol ||
		       (name == R_ClassSymbol && is_frame_class(v));
	case KIND_LIST:
		return name == R_NamesSymbol;
	case KIND_ATOMIC:
		return atomic_carries(v, name);
	default:
		return false;
	}
}

static bool has_more(const struct base *b, SEXP v)
{
	for (SEXP a = ATTRIB(v); a != R_NilValue; a = CDR(a))
		if (!carries(b, v, TAG(a)))
			return true;
	return false;
}

/* ---- writing */

static void put_attribute(struct encoder *e, SEXP name, SEXP value, int depth)
{
	bytes_char(e->b, '[');
	encode_string(e->b, PRINTNAME(name));
	bytes_char(e->b, ',');
	/* A formula's environment: the workspace of either side stands for the other's. */
	if (!strcmp(CHAR(PRINTNAME(name)), ".Environment") && TYPEOF(value) == ENVSXP &&
	    (value == R_GlobalEnv || !encode_hold))
		bytes_text(e->b, "{\"$\":\"env\",\"v\":\"global\"}");
	else
		encode_any(e, value, depth);
	bytes_char(e->b, ']');
}

static void put_attributes(struct encoder *e, SEXP v, const struct base *b, int depth)
{
	const char *comma = "";
	bytes_text(e->b, ",\"attr\":[");
	for (SEXP a = ATTRIB(v); a != R_NilValue && !e->why; a = CDR(a)) {
		if (b ? carries(b, v, TAG(a)) : is_source(TAG(a)))
			continue;
		bytes_text(e->b, comma);
		put_attribute(e, TAG(a), CAR(a), depth + 3);
		comma = ",";
	}
	bytes_char(e->b, ']');
}

void wrap_attributes(struct encoder *e, SEXP v, int depth)
{
	for (SEXP a = ATTRIB(v); a != R_NilValue; a = CDR(a))
		if (!is_source(TAG(a))) {
			put_attributes(e, v, NULL, depth);
			return;
		}
}

static void put_base(struct encoder *e, SEXP v, const struct base *b, bool alone, int depth)
{
	switch (b->kind) {
	case KIND_CLASSED:
		classed_put(e, v, &b->classed, alone);
		break;
	case KIND_FACTOR:
		classed_put_factor(e, v);
		break;
	case KIND_FRAME:
		if (!encode_is_deep(e, depth))
			frame_put(e, v, depth);
		break;
	case KIND_LIST:
		encode_list(e, v, depth);
		break;
	case KIND_RAW:
		encode_raw(e, v);
		break;
	case KIND_LANGUAGE:
		language_put(e, v, depth);
		break;
	default:
		encode_atomic(e, v, alone);
	}
}

/* What the form of the base does not tell; NULL: nothing. */
static const char *mode_of(SEXP v, const struct base *b)
{
	if (TYPEOF(v) == EXPRSXP)
		return "expression";
	if (b->kind != KIND_CLASSED)
		return NULL;
	if (!strcmp(b->classed.class, "integer64"))
		return "int64";
	return TYPEOF(v) == INTSXP ? "integer" : NULL;
}

static struct base base_of(SEXP v)
{
	struct base b = { .kind = KIND_ATOMIC };
	if (TYPEOF(v) == RAWSXP)
		b.kind = KIND_RAW;
	else if (TYPEOF(v) == LANGSXP || TYPEOF(v) == SYMSXP)
		b.kind = KIND_LANGUAGE;
	else if (TYPEOF(v) == VECSXP || TYPEOF(v) == EXPRSXP)
		b.kind = Rf_inherits(v, "data.frame") && frame_is_sound(v) ? KIND_FRAME : KIND_LIST;
	else if (OBJECT(v) && classed_is_factor(v))
		b.kind = KIND_FACTOR;
	else if (OBJECT(v) && classed_find(v, &b.classed))
		b.kind = KIND_CLASSED;
	b.mode = mode_of(v, &b);
	return b;
}

/* Broken-down times: for others the instant, for R the list that they are. */
static bool put_times(struct encoder *e, SEXP v, int depth)
{
	SEXP instant = PROTECT(encode_ask(Rf_install("as.POSIXct"), v));
	bool is_good = TYPEOF(instant) == REALSXP && Rf_inherits(instant, "POSIXct");
	if (is_good) {
		encode_any(e, instant, depth);
		bytes_text(e->b, ",\"as\":");
		encode_list(e, v, depth);
	}
	UNPROTECT(1);
	return is_good;
}

static void wrapped(struct encoder *e, SEXP v, const struct base *b, bool alone, int depth)
{
	bool has_bytes = TYPEOF(v) == STRSXP && wrap_has_bytes(v);
	if (!b->mode && !has_bytes && !IS_S4_OBJECT(v) && !has_more(b, v)) {
		put_base(e, v, b, alone, depth);
		return;
	}
	if (encode_is_deep(e, depth))
		return;
	bytes_text(e->b, "{\"$\":\"attr\",\"v\":");
	if (b->kind != KIND_LIST || !Rf_inherits(v, "POSIXlt") || !put_times(e, v, depth + 1))
		put_base(e, v, b, alone, depth + 1);
	if (b->mode)
		bytes_format(e->b, ",\"mode\":\"%s\"", b->mode);
	if (IS_S4_OBJECT(v))
		bytes_text(e->b, ",\"s4\":true");
	if (has_bytes)
		put_bytes(e, v);
	if (has_more(b, v))
		put_attributes(e, v, b, depth);
	bytes_char(e->b, '}');
}

/* Also NULL: R keeps a symbol in its place, as an attribute cannot be NULL. */
static void put_slots(struct encoder *e, SEXP v, int depth)
{
	const char *comma = "";
	if (encode_is_deep(e, depth) || !encode_take(e, 1))
		return;
	bytes_text(e->b, "{\"$\":\"s4\",\"class\":");
	encode_any(e, encode_attribute(v, R_ClassSymbol), depth + 1);
	bytes_text(e->b, ",\"slots\":[");
	for (SEXP a = ATTRIB(v); a != R_NilValue && !e->why; a = CDR(a)) {
		bool is_null = TYPEOF(CAR(a)) == SYMSXP &&
			       !strcmp(CHAR(PRINTNAME(CAR(a))), "\001NULL\001");
		if (TAG(a) == R_ClassSymbol)
			continue;
		bytes_text(e->b, comma);
		put_attribute(e, TAG(a), is_null ? R_NilValue : CAR(a), depth + 3);
		comma = ",";
	}
	bytes_text(e->b, "]}");
}

static void put_pairs(struct encoder *e, SEXP v, int depth)
{
	SEXP list = PROTECT(Rf_coerceVector(v, VECSXP));
	struct base b = { .kind = KIND_LIST, .mode = "pairlist" };
	wrapped(e, list, &b, true, depth);
	UNPROTECT(1);
}

/* A handle of a guest's, which a client sends back. */
static bool put_handle(struct encoder *e, SEXP v)
{
	SEXP id = encode_attribute(v, Rf_install("id"));
	if (encode_hold || TYPEOF(v) != STRSXP || !Rf_inherits(v, "cordon_handle") ||
	    TYPEOF(id) != STRSXP || LENGTH(id) != 1)
		return false;
	bytes_text(e->b, "{\"$\":\"handle\",\"id\":");
	encode_string(e->b, STRING_ELT(id, 0));
	bytes_char(e->b, '}');
	return encode_take(e, 1) || true;
}

static bool is_plot(SEXP v)
{
	static const char *const classes[] = { "ggplot", "trellis", "recordedplot", "grob",
					       "gtable" };
	for (size_t i = 0; OBJECT(v) && i < sizeof(classes) / sizeof(classes[0]); i++)
		if (Rf_inherits(v, classes[i]))
			return true;
	return false;
}

/* An object around an environment (a reference class) is what the environment is. */
static bool is_data(SEXP v)
{
	switch (TYPEOF(v)) {
	case S4SXP:
		return encode_attribute(v, Rf_install(".xData")) == R_NilValue;
	case RAWSXP:
	case LANGSXP:
	case SYMSXP:
	case VECSXP:
	case EXPRSXP:
		return true;
	default:
		return encode_is_atomic(v);
	}
}

void wrap_value(struct encoder *e, SEXP v, bool alone, int depth)
{
	if (TYPEOF(v) == VECSXP && ATTRIB(v) == R_NilValue) {
		encode_list(e, v, depth);
	} else if (TYPEOF(v) == LISTSXP) {
		put_pairs(e, v, depth);
	} else if (!is_data(v) || is_plot(v) || Rf_inherits(v, "connection")) {
		encode_text_form(e, v, !is_plot(v));
	} else if (TYPEOF(v) == S4SXP) {
		put_slots(e, v, depth);
	} else if (!put_handle(e, v)) {
		struct base b = base_of(v);
		wrapped(e, v, &b, alone, depth);
	}
}
