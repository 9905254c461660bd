/* base/jsonscan.c - see jsonscan.h. Uses only the C library, because cordon-sh contains it too. */
#include "base/jsonscan.h"

#include <stdio.h>
#include <string.h>

#include "base/jsonnumber.h"

bool jsonscan_fail(struct jsonscan *s, const char *why)
{
	if (!s->why)
		s->why = why;
	return false;
}

void jsonscan_space(struct jsonscan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
		s->p++;
}

static int hex_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The code unit of the four digits at p, or -1. */
static int hex4(const char *p, const char *end)
{
	int unit = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_of(p[i]);
		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

/* After the backslash. */
static bool scan_escape(struct jsonscan *s)
{
	char c = s->p < s->end ? *s->p++ : 0;

	s->has_escape = true;
	if (c != 'u')
		return (c && strchr("\"\\/bfnrt", c)) || jsonscan_fail(s, "bad escape in a string");
	int unit = hex4(s->p, s->end);
	if (unit < 0)
		return jsonscan_fail(s, "bad escape in a string");
	s->p += 4;
	s->has_nul |= unit == 0;
	if (unit < 0xd800 || unit > 0xdfff)
		return true;
	if (unit > 0xdbff || s->end - s->p < 6 || s->p[0] != '\\' || s->p[1] != 'u')
		return jsonscan_fail(s, "half a surrogate pair in a string");
	int low = hex4(s->p + 2, s->end);
	if (low < 0xdc00 || low > 0xdfff)
		return jsonscan_fail(s, "half a surrogate pair in a string");
	s->p += 6;
	return true;
}

/* Refuses overlong forms, surrogates and code points beyond U+10FFFF. */
size_t jsonscan_utf8(const char *text, size_t left)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	unsigned char low = 0x80, high = 0xbf;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4 || left < len)
		return 0;
	if (p[0] == 0xe0)
		low = 0xa0;
	if (p[0] == 0xed)
		high = 0x9f;
	if (p[0] == 0xf0)
		low = 0x90;
	if (p[0] == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

static bool scan_utf8(struct jsonscan *s)
{
	size_t len = jsonscan_utf8(s->p, (size_t)(s->end - s->p));

	s->p += len;
	return len > 0 || jsonscan_fail(s, "not valid UTF-8");
}

bool jsonscan_string(struct jsonscan *s)
{
	if (s->p == s->end || *s->p != '"')
		return jsonscan_fail(s, JSONSCAN_INVALID);
	s->p++;
	s->has_nul = s->has_escape = false;
	while (s->p < s->end) {
		unsigned char c = (unsigned char)*s->p;
		if (c == '"') {
			s->p++;
			return true;
		}
		if (c < 0x20)
			return jsonscan_fail(s, "control character in a string");
		if (c < 0x80)
			s->p++;
		if (c == '\\' ? !scan_escape(s) : c >= 0x80 && !scan_utf8(s))
			return false;
	}
	return jsonscan_fail(s, "a string without end");
}

static void put_utf8(char **out, unsigned code)
{
	char *o = *out;

	if (code < 0x80) {
		*o++ = (char)code;
	} else if (code < 0x800) {
		*o++ = (char)(0xc0 | code >> 6);
		*o++ = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		*o++ = (char)(0xe0 | code >> 12);
		*o++ = (char)(0x80 | (code >> 6 & 0x3f));
		*o++ = (char)(0x80 | (code & 0x3f));
	} else {
		*o++ = (char)(0xf0 | code >> 18);
		*o++ = (char)(0x80 | (code >> 12 & 0x3f));
		*o++ = (char)(0x80 | (code >> 6 & 0x3f));
		*o++ = (char)(0x80 | (code & 0x3f));
	}
	*out = o;
}

/* Decodes one checked escape from *in to *out. Never writes more than it has read. */
static void decode_escape(const char **in, const char *end, unsigned nul, char **out)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	char c = *(*in)++;
	const char *at = strchr(from, c);

	if (c != 'u') {
		*(*out)++ = at ? to[at - from] : c;
		return;
	}
	unsigned code = (unsigned)hex4(*in, end);
	*in += 4;
	if (code >= 0xd800 && code <= 0xdbff) {
		unsigned low = (unsigned)hex4(*in + 2, end);
		*in += 6;
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	}
	put_utf8(out, code ? code : nul);
}

size_t jsonscan_decode(const char *in, size_t len, unsigned nul, char *out)
{
	const char *end = in + len;
	char *start = out;

	while (in < end) {
		const char *slash = memchr(in, '\\', (size_t)(end - in));
		size_t run = (size_t)((slash ? slash : end) - in);
		memmove(out, in, run);
		out += run;
		in += run;
		if (slash) {
			in++;
			decode_escape(&in, end, nul, &out);
		}
	}
	return (size_t)(out - start);
}

size_t jsonscan_escape(unsigned char c, char ret[static JSONSCAN_ESCAPE_SIZE])
{
	static const char from[] = "\"\\\b\t\n\f\r", to[] = "\"\\btnfr";
	const char *at = c ? strchr(from, c) : NULL;

	if (!at)
		return (size_t)snprintf(ret, JSONSCAN_ESCAPE_SIZE, "\\u%04x", c);
	ret[0] = '\\';
	ret[1] = to[at - from];
	return 2;
}

bool jsonscan_key(struct jsonscan *s, const char **ret_key, size_t *ret_len)
{
	const char *key = s->p + 1;

	if (!jsonscan_string(s))
		return false;
	if (s->has_nul && !s->is_lenient)
		return jsonscan_fail(s, "NUL in a key");
	*ret_key = key;
	*ret_len = (size_t)(s->p - key) - 1;
	return true;
}

bool jsonscan_colon(struct jsonscan *s)
{
	jsonscan_space(s);
	if (s->p == s->end || *s->p != ':')
		return jsonscan_fail(s, JSONSCAN_INVALID);
	s->p++;
	jsonscan_space(s);
	return true;
}

bool jsonscan_enter(struct jsonscan *s, char close, bool *ret_is_empty)
{
	if (++s->depth > JSONSCAN_MAX_DEPTH)
		return jsonscan_fail(s, "nested deeper than 64 levels");
	s->p++;
	jsonscan_space(s);
	*ret_is_empty = s->p < s->end && *s->p == close;
	if (*ret_is_empty) {
		s->p++;
		s->depth--;
	}
	return true;
}

bool jsonscan_more(struct jsonscan *s, char close, bool *ret_more)
{
	jsonscan_space(s);
	if (s->p == s->end || (*s->p != ',' && *s->p != close))
		return jsonscan_fail(s, JSONSCAN_INVALID);
	*ret_more = *s->p++ == ',';
	if (*ret_more)
		jsonscan_space(s);
	else
		s->depth--;
	return true;
}

bool jsonscan_word(struct jsonscan *s, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(s->end - s->p) < len || memcmp(s->p, word, len) != 0)
		return jsonscan_fail(s, JSONSCAN_INVALID);
	s->p += len;
	return true;
}

bool jsonscan_number(struct jsonscan *s)
{
	struct jsonnumber n = jsonnumber_scan(s->p, s->end);

	if (!n.end)
		return jsonscan_fail(s, JSONSCAN_INVALID);
	if (!n.fits && !s->is_lenient)
		return jsonscan_fail(s, "a number out of range");
	s->p = n.end;
	s->is_real = n.is_real;
	return true;
}

static bool walk_member(struct jsonscan *s, uint64_t object)
{
	const char *key = NULL;
	size_t len = 0;

	if (!jsonscan_key(s, &key, &len) || (s->key && !s->key(s, object, key, len)) ||
	    !jsonscan_colon(s))
		return false;
	const char *start = s->p;
	if (!jsonscan_value(s))
		return false;
	if (object == 0 && s->member)
		s->member(s, key, len, start);
	return true;
}

/* From the opening bracket to after the closing one. */
static bool walk_container(struct jsonscan *s, char close)
{
	uint64_t object = close == '}' ? s->objects++ : 0;
	bool is_empty, more = true;

	if (!jsonscan_enter(s, close, &is_empty))
		return false;
	while (!is_empty && more)
		if (!(close == '}' ? walk_member(s, object) : jsonscan_value(s)) ||
		    !jsonscan_more(s, close, &more))
			return false;
	return true;
}

bool jsonscan_value(struct jsonscan *s)
{
	if (s->p == s->end)
		return jsonscan_fail(s, JSONSCAN_INVALID);
	if (++s->values > s->max_values && s->max_values)
		return jsonscan_fail(s, "more than 1000000 elements");
	switch (*s->p) {
	case '{':
		return walk_container(s, '}');
	case '[':
		return walk_container(s, ']');
	case '"':
		return jsonscan_string(s);
	case 't':
		return jsonscan_word(s, "true");
	case 'f':
		return jsonscan_word(s, "false");
	case 'n':
		return jsonscan_word(s, "null");
	default:
		return jsonscan_number(s);
	}
}

bool jsonscan_end(struct jsonscan *s)
{
	jsonscan_space(s);
	return s->p == s->end || jsonscan_fail(s, "text after the value");
}
