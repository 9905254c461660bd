/* inside/lib/wire_json.c - see wire_json.h. */
#include "inside/lib/wire_json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- checking: each function returns the end of what it has read, or NULL */

static const char *value(const char *p, const char *end, int depth);

static const char *space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
		p++;
	return p;
}

static bool hex4(const char *p, const char *end, uint32_t *ret)
{
	if (end - p < 4)
		return false;
	*ret = 0;
	for (int i = 0; i < 4; i++) {
		char c = p[i];
		uint32_t d;
		if (c >= '0' && c <= '9')
			d = (uint32_t)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			d = (uint32_t)((c | 32) - 'a') + 10;
		else
			return false;
		*ret = *ret << 4 | d;
	}
	return true;
}

static const char *string(const char *p, const char *end)
{
	uint32_t unit;
	for (p++; p < end; p++) {
		unsigned char c = (unsigned char)*p;
		if (c == '"')
			return p + 1;
		if (c < 0x20)
			return NULL;
		if (c != '\\')
			continue;
		if (++p == end)
			return NULL;
		if (*p == 'u') {
			if (!hex4(p + 1, end, &unit))
				return NULL;
			p += 4;
		} else if (!memchr("\"\\/bfnrt", *p, 8)) {
			return NULL;
		}
	}
	return NULL;
}

static const char *digits(const char *p, const char *end)
{
	const char *start = p;
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p > start ? p : NULL;
}

static const char *number(const char *p, const char *end)
{
	if (p < end && *p == '-')
		p++;
	if (p < end && *p == '0')
		p++;
	else
		p = digits(p, end);
	if (p && p < end && *p == '.')
		p = digits(p + 1, end);
	if (p && p < end && (*p | 32) == 'e') {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		p = digits(p, end);
	}
	return p;
}

static const char *word(const char *p, const char *end, const char *text)
{
	size_t n = strlen(text);
	return (size_t)(end - p) >= n && !memcmp(p, text, n) ? p + n : NULL;
}

static const char *container(const char *p, const char *end, int depth)
{
	bool object = *p == '{';
	char close = object ? '}' : ']';
	p = space(p + 1, end);
	if (p < end && *p == close)
		return p + 1;
	while (p < end) {
		if (object) {
			if (*p != '"' || !(p = string(p, end)))
				return NULL;
			p = space(p, end);
			if (p == end || *p != ':')
				return NULL;
			p = space(p + 1, end);
		}
		if (!(p = value(p, end, depth + 1)))
			return NULL;
		p = space(p, end);
		if (p == end)
			return NULL;
		if (*p == close)
			return p + 1;
		if (*p != ',')
			return NULL;
		p = space(p + 1, end);
	}
	return NULL;
}

static const char *value(const char *p, const char *end, int depth)
{
	if (p >= end)
		return NULL;
	switch (*p) {
	case '{':
	case '[':
		return depth < JSON_DEPTH ? container(p, end, depth) : NULL;
	case '"':
		return string(p, end);
	case 't':
		return word(p, end, "true");
	case 'f':
		return word(p, end, "false");
	case 'n':
		return word(p, end, "null");
	default:
		return number(p, end);
	}
}

bool json_check(const char *text, size_t len)
{
	const char *end = text + len, *p = value(space(text, end), end, 0);
	return p && space(p, end) == end && json_is_utf8(text, len);
}

/* ---- reading what was checked */

char json_kind(struct json v)
{
	if (!v.len)
		return 0;
	return strchr("{[\"tfn", *v.at) ? *v.at : '0';
}

bool json_each(struct json c, const char **at, struct json *ret_key, struct json *ret_value)
{
	if (json_kind(c) != '{' && json_kind(c) != '[')
		return false;
	const char *end = c.at + c.len, *p = space(*at ? *at : c.at + 1, end);
	if (*p == ',')
		p = space(p + 1, end);
	if (*p == '}' || *p == ']')
		return false;
	*ret_key = (struct json){ 0 };
	if (*c.at == '{') {
		const char *e = string(p, end);
		*ret_key = (struct json){ p, (size_t)(e - p) };
		p = space(space(e, end) + 1, end);
	}
	const char *e = value(p, end, 0);
	*ret_value = (struct json){ p, (size_t)(e - p) };
	*at = e;
	return true;
}

static size_t put_utf8(char out[4], uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* One \u escape, or a surrogate pair; p is after the u. Returns the end. */
static const char *unescape(const char *p, const char *end, struct bytes *ret)
{
	uint32_t c = 0xfffd, low;
	hex4(p, end, &c);
	p += 4;
	if (c >= 0xd800 && c < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
	    hex4(p + 2, end, &low) && low >= 0xdc00 && low < 0xe000) {
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		p += 6;
	} else if (c >= 0xd800 && c < 0xe000) {
		c = 0xfffd;
	}
	char out[4];
	bytes_add(ret, out, put_utf8(out, c));
	return p;
}

void json_string(struct json v, struct bytes *ret)
{
	if (json_kind(v) != '"')
		return;
	const char *p = v.at + 1, *end = v.at + v.len - 1;
	while (p < end) {
		const char *run = memchr(p, '\\', (size_t)(end - p));
		bytes_add(ret, p, (size_t)((run ? run : end) - p));
		if (!run)
			return;
		p = run + 2;
		static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
		const char *hit = strchr(from, run[1]);
		if (run[1] == 'u')
			p = unescape(p, end, ret);
		else
			bytes_char(ret, hit ? to[hit - from] : run[1]);
	}
}

struct json json_get(struct json object, const char *key)
{
	const char *at = NULL;
	struct json k, v;
	if (json_kind(object) == '{')
		while (json_each(object, &at, &k, &v))
			if (json_is(k, key))
				return v;
	return (struct json){ 0 };
}

bool json_is(struct json v, const char *text)
{
	size_t n = strlen(text);
	if (json_kind(v) != '"')
		return false;
	if (!memchr(v.at, '\\', v.len))
		return v.len == n + 2 && !memcmp(v.at + 1, text, n);
	struct bytes b = { 0 };
	json_string(v, &b);
	bool same = b.len == n && !memcmp(b.data, text, n);
	bytes_done(&b);
	return same;
}

unsigned long json_number(struct json v, unsigned long fallback)
{
	if (json_kind(v) != '0' || *v.at == '-' || v.len > 20)
		return fallback;
	char text[24] = { 0 };
	memcpy(text, v.at, v.len);
	char *end;
	unsigned long n = strtoul(text, &end, 10);
	return *end ? fallback : n;
}

/* ---- writing */

/* The length of the UTF-8 sequence at p, or 0. */
static size_t sequence(const unsigned char *p, size_t left)
{
	if (p[0] < 0x80)
		return 1;
	size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || left < n)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* The second byte excludes overlong forms, surrogates and code points above U+10FFFF. */
	unsigned low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
	unsigned high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
	return p[1] >= low && p[1] <= high ? n : 0;
}

bool json_is_utf8(const char *data, size_t len)
{
	const unsigned char *p = (const unsigned char *)data;
	for (size_t i = 0, n; i < len; i += n)
		if (!(n = sequence(p + i, len - i)))
			return false;
	return true;
}

void json_quote(struct bytes *b, const char *data, size_t len)
{
	static const char from[] = "\"\\\n\t\r\b\f", to[] = "\"\\ntrbf";
	const unsigned char *p = (const unsigned char *)data;
	size_t plain = 0; /* start of a run of characters that need no escape */
	bytes_char(b, '"');
	for (size_t i = 0, n; i < len; i += n) {
		n = sequence(p + i, len - i);
		if (n && p[i] >= 0x20 && p[i] != '"' && p[i] != '\\')
			continue;
		bytes_add(b, p + plain, i - plain);
		const char *at = p[i] ? strchr(from, p[i]) : NULL;
		if (!n)
			bytes_text(b, "\xef\xbf\xbd");
		else if (at)
			bytes_add(b, (char[]){ '\\', to[at - from] }, 2);
		else
			bytes_format(b, "\\u%04x", p[i]);
		n = n ? n : 1;
		plain = i + n;
	}
	bytes_add(b, p + plain, len - plain);
	bytes_char(b, '"');
}
