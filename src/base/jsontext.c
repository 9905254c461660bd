/* base/jsontext.c - writes JSON: compact and fast; every double reads back as the same value. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/jsonscan.h"
#include "base/mem.h"
#include "base/str.h"

/* Values made by the host are not limited by the parser's depth, but the writer's stack is. */
enum { WRITE_MAX_DEPTH = 1000 };

struct writer {
	struct buf out;
	bool pretty;
};

static int write_value(struct writer *w, const json_t *j, size_t depth);

static int write_integer(struct buf *b, json_int_t value)
{
	char digits[24], *at = digits + sizeof(digits);
	unsigned long long left =
		value < 0 ? -(unsigned long long)value : (unsigned long long)value;

	do
		*--at = (char)('0' + left % 10);
	while (left /= 10);
	if (value < 0)
		*--at = '-';
	return buf_add(b, at, (size_t)(digits + sizeof(digits) - at));
}

/* Normalises a number. The host program's locale may write the decimal point differently, even as
 * several bytes; these become one '.'. Returns the new length; *ret_is_real: it has a '.' or an
 * 'e'. */
static size_t plain_number(char *text, bool *ret_is_real)
{
	size_t len = 0;
	bool is_real = false;

	for (const char *s = text; *s; s++) {
		if (strchr("0123456789+-e", *s)) {
			is_real = is_real || *s == 'e';
			text[len++] = *s;
		} else if (!is_real) {
			text[len++] = '.';
			is_real = true;
		}
	}
	*ret_is_real = is_real;
	return len;
}

/* The fewest digits that read back as the same double, with '.' or 'e' so that it stays a
 * double. */
static int write_real(struct buf *b, double value)
{
	char text[64];
	bool is_real;

	if (value == floor(value) && fabs(value) < 1e15 && (value != 0 || !signbit(value))) {
		int r = write_integer(b, (json_int_t)value);
		return r < 0 ? r : buf_add_str(b, ".0");
	}
	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, value);
		if (digits == 17 || strtod(text, NULL) == value)
			break;
	}
	int r = buf_add(b, text, plain_number(text, &is_real));
	return r < 0 || is_real ? r : buf_add_str(b, ".0");
}

/* How many bytes at the start are ASCII and need no escape: eight at a time, because output of code
 * is streamed through here. */
static size_t plain_run(const char *s, size_t len)
{
	const uint64_t ones = 0x0101010101010101U, tops = ones << 7;
	size_t i = 0;

	for (uint64_t w; i + sizeof(w) <= len; i += sizeof(w)) {
		memcpy(&w, s + i, sizeof(w));
		uint64_t quote = w ^ ones * '"', slash = w ^ ones * '\\';
		uint64_t odd = w | (w - ones * 0x20) | (quote - ones) | (slash - ones);
		if (odd & tops) /* also after a byte that is not plain; the loop below finds it */
			break;
	}
	while (i < len && (unsigned char)s[i] >= 0x20 && (unsigned char)s[i] < 0x80 &&
	       s[i] != '"' && s[i] != '\\')
		i++;
	return i;
}

/* How many bytes at the start are whole characters beyond ASCII. */
static size_t wide_run(const char *s, size_t len)
{
	size_t i = 0;
	int n = 1;

	while (n > 0 && i < len && (unsigned char)s[i] >= 0x80) {
		n = str_utf8_next(s + i, len - i);
		i += n > 0 ? (size_t)n : 0;
	}
	return i;
}

/* Adds the character at s, which cannot stand in a JSON string. Returns how many bytes it has. */
static size_t add_odd(struct buf *b, const char *s, size_t len, int *r)
{
	char escape[JSONSCAN_ESCAPE_SIZE];

	if ((unsigned char)*s < 0x80) {
		*r = buf_add(b, escape, jsonscan_escape((unsigned char)*s, escape));
		return 1;
	}
	*r = buf_add_str(b, "\xef\xbf\xbd");
	return (size_t)-str_utf8_next(s, len);
}

int json_add_text(struct buf *b, const char *s, size_t len)
{
	int r = buf_reserve(b, len) ? 0 : -CORDON_NOMEM;

	for (size_t i = 0, run; r == 0 && i < len; i += run) {
		run = plain_run(s + i, len - i);
		if (run == 0)
			run = wide_run(s + i, len - i);
		if (run > 0)
			r = buf_add(b, s + i, run);
		else
			run = add_odd(b, s + i, len - i, &r);
	}
	return r;
}

static int write_string(struct buf *b, const char *s, size_t len)
{
	int r = buf_add_char(b, '"');

	if (r == 0)
		r = json_add_text(b, s, len);
	return r < 0 ? r : buf_add_char(b, '"');
}

static int write_break(struct writer *w, size_t depth)
{
	int r = w->pretty ? buf_add_char(&w->out, '\n') : 0;

	for (size_t i = 0; w->pretty && r == 0 && i < depth; i++)
		r = buf_add_str(&w->out, "  ");
	return r;
}

static int write_array(struct writer *w, const json_t *j, size_t depth)
{
	size_t count = json_array_size(j);
	int r = buf_add_char(&w->out, '[');

	for (size_t i = 0; r == 0 && i < count; i++) {
		if (i > 0)
			r = buf_add_char(&w->out, ',');
		if (r == 0)
			r = write_break(w, depth + 1);
		if (r == 0)
			r = write_value(w, json_array_get(j, i), depth + 1);
	}
	if (r == 0 && count > 0)
		r = write_break(w, depth);
	return r < 0 ? r : buf_add_char(&w->out, ']');
}

static int write_member(struct writer *w, void *iter, size_t depth)
{
	int r = write_break(w, depth + 1);
	if (r == 0)
		r = write_string(&w->out, json_object_iter_key(iter),
				 json_object_iter_key_len(iter));
	if (r == 0)
		r = buf_add(&w->out, ": ", w->pretty ? 2 : 1);
	return r < 0 ? r : write_value(w, json_object_iter_value(iter), depth + 1);
}

static int write_object(struct writer *w, const json_t *j, size_t depth)
{
	json_t *obj = (json_t *)j; /* jansson's iterators do not accept const */
	int r = buf_add_char(&w->out, '{');
	bool any = false;

	for (void *i = json_object_iter(obj); r == 0 && i; i = json_object_iter_next(obj, i)) {
		if (any)
			r = buf_add_char(&w->out, ',');
		any = true;
		if (r == 0)
			r = write_member(w, i, depth);
	}
	if (r == 0 && any)
		r = write_break(w, depth);
	return r < 0 ? r : buf_add_char(&w->out, '}');
}

static int write_value(struct writer *w, const json_t *j, size_t depth)
{
	if (depth > WRITE_MAX_DEPTH)
		return -CORDON_LIMIT;
	switch (json_typeof(j)) {
	case JSON_OBJECT:
		return write_object(w, j, depth);
	case JSON_ARRAY:
		return write_array(w, j, depth);
	case JSON_STRING:
		return write_string(&w->out, json_string_value(j), json_string_length(j));
	case JSON_INTEGER:
		return write_integer(&w->out, json_integer_value(j));
	case JSON_REAL:
		return write_real(&w->out, json_real_value(j));
	case JSON_TRUE:
		return buf_add_str(&w->out, "true");
	case JSON_FALSE:
		return buf_add_str(&w->out, "false");
	case JSON_NULL:
		return buf_add_str(&w->out, "null");
	}
	return -CORDON_INVALID;
}

static char *text_of(const json_t *j, bool pretty, size_t *ret_len)
{
	struct writer w = { .pretty = pretty };

	if (!j)
		return NULL;
	buf_init(&w.out, SIZE_MAX);
	if (write_value(&w, j, 0) < 0) {
		buf_done(&w.out);
		return NULL;
	}
	if (ret_len)
		*ret_len = w.out.len;
	return buf_take(&w.out);
}

char *json_text(const json_t *j, size_t *ret_len)
{
	return text_of(j, false, ret_len);
}

char *json_text_pretty(const json_t *j)
{
	return text_of(j, true, NULL);
}
