/* inside/guests/r/r_columns_out.c - see r_columns.h: R's vectors as binary columns. Numbers are not
 * copied: the vector's own memory is written. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside/guests/r/r_columns.h"

enum { THRESHOLD = 65536, FRAME_FLOOR = 1024, ALIGN = 64 };

struct part {
	const void *data;
	void *owned; /* freed at the end; NULL: memory of `vector` */
	SEXP vector;
	size_t len, pad;
};

static struct {
	bool is_on;
	double limit;
	size_t bytes, floor, count;
	struct bytes table;
	struct part *parts;
	size_t part_count, part_cap;
} out;

void columns_end(void)
{
	for (size_t i = out.part_count; i-- > 0;) {
		if (out.parts[i].vector)
			R_ReleaseObject(out.parts[i].vector);
		free(out.parts[i].owned);
	}
	free(out.parts);
	bytes_done(&out.table);
	memset(&out, 0, sizeof(out));
}

void columns_begin(double limit)
{
	columns_end();
	out.is_on = limit > 0;
	out.limit = limit;
	out.floor = THRESHOLD;
}

void columns_pause(void)
{
	out.is_on = false;
}

double columns_bytes(void)
{
	return (double)out.bytes;
}

void columns_table(struct bytes *b)
{
	bytes_format(b, "{\"bytes\":%zu,\"columns\":[", out.bytes);
	bytes_add(b, out.table.data, out.table.len);
	bytes_text(b, "]}");
}

bool columns_write(bool (*write)(void *arg, const void *data, size_t len), void *arg)
{
	static const char zeros[ALIGN];

	for (size_t i = 0; i < out.part_count; i++)
		if (!write(arg, zeros, out.parts[i].pad) ||
		    !write(arg, out.parts[i].data, out.parts[i].len))
			return false;
	return true;
}

bool columns_takes(R_xlen_t n, size_t width)
{
	return out.is_on && (double)n * (double)width >= (double)out.floor;
}

void columns_enter(double cells)
{
	if (out.is_on && cells * 8 >= THRESHOLD)
		out.floor = FRAME_FLOOR;
}

void columns_leave(void)
{
	out.floor = THRESHOLD;
}

static void *memory(size_t len)
{
	void *p = calloc(len ? len : 1, 1);

	if (!p)
		Rf_error("no memory for %zu bytes", len);
	return p;
}

static bool widen(void)
{
	size_t cap = out.part_cap ? out.part_cap * 2 : 32;
	struct part *wider = realloc(out.parts, cap * sizeof(*wider));

	if (!wider)
		return false;
	out.parts = wider;
	out.part_cap = cap;
	return true;
}

#ifdef CORDON_ANALYZER /* gcc 12 takes what a free place of the list held before for lost memory   \
			*/
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
/* Adds a part and returns its place. Its memory is kept until the end: owned, or a vector's. */
static size_t add_kept(struct encoder *e, const void *data, size_t len, void *owned, SEXP vector)
{
	size_t pad = (ALIGN - out.bytes % ALIGN) % ALIGN, at = out.bytes + pad;

	if ((double)at + (double)len > out.limit && !e->why) {
		snprintf(e->said, sizeof(e->said),
			 "the value is too large (max %.0f bytes: the policy's value_bytes)",
			 out.limit);
		e->why = e->said;
	}
	if (out.part_count == out.part_cap && !widen()) {
		free(owned);
		Rf_error("no memory for a large value");
	}
	if (vector)
		R_PreserveObject(vector); /* it may be the encoder's own */
	out.parts[out.part_count++] = (struct part){ data, owned, vector, len, pad };
	out.bytes = at + len;
	return at;
}
#ifdef CORDON_ANALYZER
#pragma GCC diagnostic pop
#endif

static size_t add_part(struct encoder *e, const void *data, size_t len, void *owned)
{
	return add_kept(e, data, len, owned, NULL);
}

static void begin_column(const char *type, R_xlen_t n)
{
	bytes_format(&out.table, "%s{\"type\":\"%s\",\"count\":%lld", out.count ? "," : "", type,
		     (long long)n);
}

static void end_column(struct encoder *e, size_t values)
{
	bytes_format(&out.table, ",\"values\":%zu}", values);
	bytes_format(e->b, "{\"$buf\":%zu}", out.count++);
}

static bool is_int64(SEXP v)
{
	return TYPEOF(v) == REALSXP && Rf_inherits(v, "integer64");
}

static bool is_lost(SEXP v, R_xlen_t i)
{
	int64_t x;

	if (TYPEOF(v) == REALSXP && !is_int64(v))
		return ISNAN(REAL(v)[i]) && R_IsNA(REAL(v)[i]);
	if (TYPEOF(v) != REALSXP)
		return encode_is_missing(v, i);
	memcpy(&x, &REAL(v)[i], 8);
	return x == INT64_MIN;
}

/* The first missing element, or the length. */
static R_xlen_t first_lost(SEXP v)
{
	R_xlen_t n = XLENGTH(v), i = 0;

	if (TYPEOF(v) == REALSXP && !is_int64(v)) {
		const double *x = REAL(v);
		while (i < n && !(ISNAN(x[i]) && R_IsNA(x[i])))
			i++;
	} else if (TYPEOF(v) == INTSXP || TYPEOF(v) == LGLSXP) {
		const int *x = INTEGER(v);
		while (i < n && x[i] != NA_INTEGER)
			i++;
	} else {
		while (i < n && !is_lost(v, i))
			i++;
	}
	return i;
}

static void put_validity(struct encoder *e, SEXP v)
{
	R_xlen_t n = XLENGTH(v), from = first_lost(v);

	if (from == n)
		return;
	size_t len = ((size_t)n + 7) / 8;
	unsigned char *bits = memory(len);
	for (R_xlen_t i = 0; i < n; i++)
		if (i < from || !is_lost(v, i))
			bits[i / 8] |= (unsigned char)(1 << i % 8);
	bytes_format(&out.table, ",\"validity\":%zu", add_part(e, bits, len, bits));
}

static const char *utf8_of(SEXP s)
{
	return Rf_getCharCE(s) == CE_BYTES ? CHAR(s) : Rf_translateCharUTF8(s);
}

/* One text: what is not UTF-8 becomes U+FFFD, three bytes for one. ret NULL: only the length. */
static size_t copy_text(const char *t, char *ret)
{
	size_t len = strlen(t), n = 0;

	if (json_is_utf8(t, len)) {
		if (ret)
			memcpy(ret, t, len); /* NOLINT: texts of a column have no NUL */
		return len;
	}
	for (size_t i = 0; i < len; i++) {
		bool is_plain = (unsigned char)t[i] < 0x80;
		if (ret)
			memcpy(ret + n, is_plain ? t + i : "\xef\xbf\xbd", is_plain ? 1 : 3);
		n += is_plain ? 1 : 3;
	}
	return n;
}

static void put_texts(struct encoder *e, SEXP v)
{
	R_xlen_t n = XLENGTH(v);
	size_t total = 0, at = 0;
	const void *top = vmaxget();

	for (R_xlen_t i = 0; i < n; i++) {
		if (STRING_ELT(v, i) != NA_STRING)
			total += copy_text(utf8_of(STRING_ELT(v, i)), NULL);
		vmaxset(top);
	}
	bool is_large = total > INT32_MAX;
	begin_column(is_large ? "large_utf8" : "utf8", n);
	put_validity(e, v);
	size_t width = is_large ? 8 : 4;
	char *offsets = memory(((size_t)n + 1) * width);
	size_t where = add_part(e, offsets, ((size_t)n + 1) * width, offsets);
	char *text = memory(total);
	size_t values = add_part(e, text, total, text);
	for (R_xlen_t i = 0; i <= n; i++) {
		uint64_t offset = at;
		memcpy(offsets + (size_t)i * width, &offset, width);
		if (i < n && STRING_ELT(v, i) != NA_STRING)
			at += copy_text(utf8_of(STRING_ELT(v, i)), text + at);
		vmaxset(top);
	}
	bytes_format(&out.table, ",\"offsets\":%zu,\"bytes\":%zu", where, total);
	end_column(e, values);
}

static void put_truths(struct encoder *e, SEXP v)
{
	size_t n = (size_t)XLENGTH(v);
	unsigned char *truths = memory(n);

	begin_column("bool8", XLENGTH(v));
	put_validity(e, v);
	for (size_t i = 0; i < n; i++)
		truths[i] = LOGICAL(v)[i] != NA_LOGICAL && LOGICAL(v)[i] != 0;
	end_column(e, add_part(e, truths, n, truths));
}

static void put_scaled(struct encoder *e, SEXP v, double scale)
{
	size_t n = (size_t)XLENGTH(v);
	double *x = memory(n * 8);

	begin_column("float64", XLENGTH(v));
	put_validity(e, v);
	for (size_t i = 0; i < n; i++)
		x[i] = (TYPEOF(v) == INTSXP ? INTEGER(v)[i] : REAL(v)[i]) * scale;
	end_column(e, add_part(e, x, n * 8, x));
}

static void put_plain(struct encoder *e, SEXP v, const char *type, size_t width)
{
	const void *data = TYPEOF(v) == RAWSXP ? (const void *)RAW(v) : DATAPTR_RO(v);

	begin_column(type, XLENGTH(v));
	if (TYPEOF(v) != RAWSXP)
		put_validity(e, v);
	end_column(e, add_kept(e, data, (size_t)XLENGTH(v) * width, NULL, v));
}

void columns_put(struct encoder *e, SEXP v, double scale)
{
	if (scale != 1)
		put_scaled(e, v, scale);
	else if (TYPEOF(v) == STRSXP)
		put_texts(e, v);
	else if (TYPEOF(v) == LGLSXP)
		put_truths(e, v);
	else if (TYPEOF(v) == INTSXP)
		put_plain(e, v, "int32", 4);
	else if (TYPEOF(v) == CPLXSXP)
		put_plain(e, v, "complex128", 16);
	else if (TYPEOF(v) == RAWSXP)
		put_plain(e, v, "uint8", 1);
	else
		put_plain(e, v, is_int64(v) ? "int64" : "float64", 8);
}

bool columns_vector(struct encoder *e, SEXP v, const char *type, const char *more)
{
	SEXP names = encode_attribute(v, R_NamesSymbol);
	SEXP unit = encode_attribute(v, Rf_install("units"));
	bool has_unit = !strcmp(type, "duration") && TYPEOF(unit) == STRSXP && LENGTH(unit) == 1;
	double scale = has_unit ? instant_unit(CHAR(STRING_ELT(unit, 0))) : 1;

	if (!columns_takes(XLENGTH(v), 8) || (TYPEOF(v) == STRSXP && strcmp(type, "string") != 0))
		return false;
	if (!encode_take(e, 1))
		return true;
	bytes_format(e->b, "{\"$\":\"vec\",\"t\":\"%s\",\"v\":", type);
	columns_put(e, v, scale);
	if (!strcmp(type, "datetime"))
		bytes_format(e->b, ",\"unit\":\"s\"%s",
			     strstr(more, "\"tz\":") ? "" : ",\"tz\":\"UTC\"");
	if (TYPEOF(names) == STRSXP) {
		bytes_text(e->b, ",\"names\":");
		columns_put(e, names, 1);
	}
	SEXP dim = encode_attribute(v, R_DimSymbol);
	if (TYPEOF(dim) == INTSXP)
		encode_shape(e, dim, "dim");
	bytes_text(e->b, more);
	bytes_char(e->b, '}');
	return true;
}
