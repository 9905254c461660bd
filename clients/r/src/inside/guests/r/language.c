/* inside/guests/r/language.c - symbols, calls and formulas as data, both ways. The tree is written
 * flat, each call before its elements, so that long formulas are not nested deeply. Reading builds
 * the objects and evaluates nothing. */
#include <string.h>

#include "inside/guests/r/decode.h"
#include "inside/guests/r/encode.h"

#define LEVELS_MAX 1000
#define TEXT_BYTES 4096
#define NAME_BYTES 1000

/* ---- writing */

static bool is_source(SEXP v)
{
	return TYPEOF(v) == INTSXP && Rf_inherits(v, "srcref");
}

static void put_tags(struct encoder *e, SEXP v)
{
	bool has_tags = false;
	for (SEXP p = v; p != R_NilValue; p = CDR(p))
		has_tags = has_tags || TAG(p) != R_NilValue;
	if (!has_tags)
		return;
	bytes_text(e->b, ",\"names\":[");
	for (SEXP p = v; p != R_NilValue; p = CDR(p)) {
		bytes_text(e->b, p == v ? "" : ",");
		encode_string(e->b, TAG(p) == R_NilValue ? R_BlankString : PRINTNAME(TAG(p)));
	}
	bytes_char(e->b, ']');
}

/* is_top: its attributes are written around the whole. */
static void put_node(struct encoder *e, SEXP v, int level, int depth, bool is_top)
{
	if (!encode_take(e, 1))
		return;
	if (level > LEVELS_MAX) {
		e->why = "the language is nested too deeply";
		return;
	}
	if (TYPEOF(v) == SYMSXP) {
		encode_string(e->b, PRINTNAME(v));
	} else if (TYPEOF(v) == LANGSXP || TYPEOF(v) == LISTSXP) {
		bytes_format(e->b, "{\"%s\":%d", TYPEOF(v) == LANGSXP ? "call" : "pairs",
			     Rf_length(v));
		put_tags(e, v);
		if (!is_top)
			wrap_attributes(e, v, depth + 2);
		bytes_char(e->b, '}');
		for (SEXP p = v; p != R_NilValue && !e->why; p = CDR(p)) {
			bytes_char(e->b, ',');
			put_node(e, CAR(p), level + 1, depth, false);
		}
	} else {
		bytes_text(e->b, "{\"value\":");
		encode_any(e, is_source(v) ? R_NilValue : v, depth + 3);
		bytes_char(e->b, '}');
	}
}

/* For languages that have no other form for it. */
static void put_text(struct encoder *e, SEXP v)
{
	SEXP lines = PROTECT(encode_ask(Rf_install("deparse"), v));
	struct bytes text = { 0 };
	const void *top = vmaxget();
	for (R_xlen_t i = 0; TYPEOF(lines) == STRSXP && i < XLENGTH(lines) && text.len < TEXT_BYTES;
	     i++) {
		bytes_text(&text, i ? "\n" : "");
		bytes_text(&text, Rf_translateCharUTF8(STRING_ELT(lines, i)));
	}
	vmaxset(top);
	bytes_text(e->b, ",\"text\":");
	json_quote(e->b, text.len ? text.data : "", text.len);
	bytes_done(&text);
	UNPROTECT(1);
}

void language_put(struct encoder *e, SEXP v, int depth)
{
	if (encode_is_deep(e, depth + 2))
		return;
	bytes_text(e->b, "{\"$\":\"lang\",\"v\":[");
	put_node(e, v, 1, depth, true);
	bytes_char(e->b, ']');
	put_text(e, v);
	bytes_char(e->b, '}');
}

/* ---- reading */

struct reader {
	struct json list;
	const char *at;
	bool is_bad;
};

static SEXP read_node(struct reader *r, int level);

/* Symbols stay in memory for ever: their number and length are bounded. */
SEXP language_symbol(struct json name)
{
	if (json_kind(name) != '"' || name.len > NAME_BYTES || !decode_may_name())
		return NULL;
	SEXP s = PROTECT(decode_string(name));
	SEXP symbol = LENGTH(s) ? Rf_installTrChar(s) : R_MissingArg;
	UNPROTECT(1);
	return symbol;
}

static void set_tags(SEXP v, struct json names)
{
	const char *at = NULL;
	struct json key, name;
	for (SEXP p = v; p != R_NilValue && json_each(names, &at, &key, &name); p = CDR(p)) {
		SEXP tag = language_symbol(name);
		if (tag && tag != R_MissingArg)
			SET_TAG(p, tag);
	}
}

static SEXP read_elements(struct reader *r, struct json head, bool is_call, int level)
{
	double n = decode_double(json_get(head, is_call ? "call" : "pairs"));
	if (!(n >= 1 && n <= (double)r->list.len)) {
		r->is_bad = true;
		return R_NilValue;
	}
	SEXP items = PROTECT(Rf_allocList((int)n));
	for (SEXP p = items; p != R_NilValue && !r->is_bad; p = CDR(p))
		SETCAR(p, read_node(r, level + 1));
	set_tags(items, json_get(head, "names"));
	SEXP out = items;
	if (is_call) {
		out = Rf_lcons(CAR(items), CDR(items));
		if (TAG(items) != R_NilValue)
			SET_TAG(out, TAG(items));
	}
	PROTECT(out);
	if (json_get(head, "attr").len && !r->is_bad)
		unwrap_attributes(out, json_get(head, "attr"));
	UNPROTECT(2);
	return out;
}

static SEXP read_node(struct reader *r, int level)
{
	struct json key, item;
	if (level > LEVELS_MAX || !json_each(r->list, &r->at, &key, &item)) {
		r->is_bad = true;
		return R_NilValue;
	}
	if (json_kind(item) == '"') {
		SEXP symbol = language_symbol(item);
		r->is_bad = r->is_bad || !symbol;
		return symbol ? symbol : R_NilValue;
	}
	if (json_get(item, "call").len)
		return read_elements(r, item, true, level);
	if (json_get(item, "pairs").len)
		return read_elements(r, item, false, level);
	return decode_value(json_get(item, "value"));
}

/* Its text if it is not well-formed. */
SEXP language_decode(struct json v)
{
	struct reader r = { .list = json_get(v, "v") };
	SEXP out = decode_is_plain ? R_NilValue : PROTECT(read_node(&r, 1));
	if (!decode_is_plain)
		UNPROTECT(1);
	return decode_is_plain || r.is_bad ? decode_value(json_get(v, "text")) : out;
}

/* ---- formulas */

/* What formulas of models use, none of which does anything but compute. */
static bool is_harmless(const char *name)
{
	static const char *const known[] = {
		"~",         "+",          "-",
		"*",         "/",          "^",
		":",         "(",          "|",
		"||",        "!",          "&",
		"&&",        "==",         "!=",
		"<",         ">",          "<=",
		">=",        "%in%",       "%%",
		"%/%",       "I",          "Surv",
		"abs",       "acos",       "as.character",
		"as.factor", "as.integer", "as.numeric",
		"asin",      "atan",       "bs",
		"c",         "cbind",      "ceiling",
		"cos",       "cosh",       "cut",
		"exp",       "expm1",      "factor",
		"floor",     "ifelse",     "interaction",
		"is.na",     "list",       "log",
		"log10",     "log1p",      "log2",
		"ns",        "offset",     "ordered",
		"pmax",      "pmin",       "poly",
		"relevel",   "rep",        "round",
		"s",         "scale",      "seq",
		"sign",      "sin",        "sinh",
		"sqrt",      "strata",     "tan",
		"tanh",      "te",         "trunc",
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(name, known[i]))
			return true;
	return false;
}

static bool computes_only(SEXP v, int level)
{
	if (level > LEVELS_MAX)
		return false;
	if (TYPEOF(v) == LANGSXP &&
	    (TYPEOF(CAR(v)) != SYMSXP || !is_harmless(CHAR(PRINTNAME(CAR(v))))))
		return false;
	if (TYPEOF(v) == EXPRSXP)
		return false;
	for (SEXP p = v; TYPEOF(v) == LANGSXP && p != R_NilValue; p = CDR(p))
		if (!computes_only(CAR(p), level + 1))
			return false;
	return true;
}

bool language_is_harmless(SEXP v)
{
	for (SEXP a = ATTRIB(v); a != R_NilValue; a = CDR(a))
		if (!computes_only(CAR(a), 1))
			return false;
	return computes_only(v, 1);
}
