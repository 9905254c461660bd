/* wire/scan.c - see scan.h. */
#include "wire/scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "wire/json_number.h"
#include "wire/keyset.h"

struct scan {
	char *p, *end;
	unsigned depth;
	bool has_nul; /* the last string contained a NUL */
	uint64_t values, objects;
	struct keyset keys;
	struct scan_member *members; /* members of the outermost object to report */
	size_t member_count;
	const char *why; /* the first error */
};

static bool fail(struct scan *s, const char *why)
{
	if (!s->why)
		s->why = why;
	return false;
}

static void skip_space(struct scan *s)
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
static bool scan_escape(struct scan *s)
{
	char c = s->p < s->end ? *s->p++ : 0;

	if (c != 'u')
		return (c && strchr("\"\\/bfnrt", c)) || fail(s, "bad escape in a string");
	int unit = hex4(s->p, s->end);
	if (unit < 0)
		return fail(s, "bad escape in a string");
	s->p += 4;
	s->has_nul |= unit == 0;
	if (unit < 0xd800 || unit > 0xdfff)
		return true;
	if (unit > 0xdbff || s->end - s->p < 6 || s->p[0] != '\\' || s->p[1] != 'u')
		return fail(s, "half a surrogate pair in a string");
	int low = hex4(s->p + 2, s->end);
	if (low < 0xdc00 || low > 0xdfff)
		return fail(s, "half a surrogate pair in a string");
	s->p += 6;
	return true;
}

/* One multi-byte sequence. Refuses overlong forms, surrogates and code points beyond U+10FFFF. */
static bool scan_utf8(struct scan *s)
{
	const unsigned char *p = (const unsigned char *)s->p;
	ptrdiff_t left = s->end - s->p;
	int len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	unsigned char low = 0x80, high = 0xbf;

	if (p[0] < 0xc2 || p[0] > 0xf4 || left < len)
		return fail(s, "not valid UTF-8");
	if (p[0] == 0xe0)
		low = 0xa0;
	if (p[0] == 0xed)
		high = 0x9f;
	if (p[0] == 0xf0)
		low = 0x90;
	if (p[0] == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return fail(s, "not valid UTF-8");
	for (int i = 2; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return fail(s, "not valid UTF-8");
	s->p += len;
	return true;
}

/* At the opening quote. */
static bool scan_string(struct scan *s)
{
	if (s->p == s->end || *s->p != '"')
		return fail(s, "not valid JSON");
	s->p++;
	s->has_nul = false;
	while (s->p < s->end) {
		unsigned char c = (unsigned char)*s->p;
		if (c == '"') {
			s->p++;
			return true;
		}
		if (c < 0x20)
			return fail(s, "control character in a string");
		if (c < 0x80)
			s->p++;
		if (c == '\\' ? !scan_escape(s) : c >= 0x80 && !scan_utf8(s))
			return false;
	}
	return fail(s, "a string without end");
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
static void decode_escape(const char **in, const char *end, char **out)
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
	put_utf8(out, code ? code : 0xfffd);
}

/* Decodes a checked string between its quotes; out may be the same memory. */
static size_t decode(const char *in, size_t len, char *out)
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
			decode_escape(&in, end, &out);
		}
	}
	return (size_t)(out - start);
}

/* Refuses a key that this object already has, even if escaped differently. */
static bool check_key(struct scan *s, uint64_t object, char *key, size_t len)
{
	cleanup_free char *decoded = NULL;

	if (memchr(key, '\\', len)) {
		decoded = mem_alloc(len);
		if (!decoded)
			return fail(s, "out of memory");
		len = decode(key, len, decoded);
	}
	enum keyset_answer a = keyset_add(&s->keys, object, decoded ? decoded : key, len);
	if (a == KEYSET_SEEN)
		return fail(s, "duplicate key in an object");
	return a == KEYSET_NEW || fail(s, "out of memory");
}

static bool walk_value(struct scan *s);

/* Records the value from start to the current position, if the member is wanted. */
static void note_member(struct scan *s, const char *key, size_t key_len, char *start)
{
	for (size_t i = 0; i < s->member_count; i++) {
		struct scan_member *m = &s->members[i];
		if (strlen(m->name) == key_len && memcmp(m->name, key, key_len) == 0)
			m->value = (struct scan_slice){ start, (size_t)(s->p - start) };
	}
}

static bool walk_member(struct scan *s, uint64_t object)
{
	char *key = s->p + 1;

	if (!scan_string(s))
		return false;
	if (s->has_nul)
		return fail(s, "NUL in a key");
	size_t key_len = (size_t)(s->p - key) - 1;
	if (!check_key(s, object, key, key_len))
		return false;
	skip_space(s);
	if (s->p == s->end || *s->p != ':')
		return fail(s, "not valid JSON");
	s->p++;
	skip_space(s);
	char *start = s->p;
	if (!walk_value(s))
		return false;
	if (object == 0)
		note_member(s, key, key_len, start);
	return true;
}

/* From the opening bracket to after the closing one. */
static bool walk_container(struct scan *s, char close)
{
	uint64_t object = close == '}' ? s->objects++ : 0;

	if (++s->depth > SCAN_MAX_DEPTH)
		return fail(s, "nested deeper than 64 levels");
	s->p++;
	skip_space(s);
	if (s->p < s->end && *s->p == close) {
		s->p++;
		s->depth--;
		return true;
	}
	for (;;) {
		skip_space(s);
		if (!(close == '}' ? walk_member(s, object) : walk_value(s)))
			return false;
		skip_space(s);
		if (s->p == s->end || (*s->p != ',' && *s->p != close))
			return fail(s, "not valid JSON");
		if (*s->p++ == close)
			break;
	}
	s->depth--;
	return true;
}

static bool walk_word(struct scan *s, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(s->end - s->p) < len || memcmp(s->p, word, len) != 0)
		return fail(s, "not valid JSON");
	s->p += len;
	return true;
}

static bool walk_value(struct scan *s)
{
	if (s->p == s->end)
		return fail(s, "not valid JSON");
	if (++s->values > SCAN_MAX_VALUES)
		return fail(s, "more than 1000000 elements");
	switch (*s->p) {
	case '{':
		return walk_container(s, '}');
	case '[':
		return walk_container(s, ']');
	case '"':
		return scan_string(s);
	case 't':
		return walk_word(s, "true");
	case 'f':
		return walk_word(s, "false");
	case 'n':
		return walk_word(s, "null");
	default:
		break;
	}
	const char *after = number_end(s->p, s->end);
	if (!after)
		return fail(s, "not valid JSON, or a number out of range");
	s->p += after - s->p;
	return true;
}

static const char *run(struct scan *s)
{
	keyset_init(&s->keys);
	skip_space(s);
	if (walk_value(s)) {
		skip_space(s);
		if (s->p != s->end)
			(void)fail(s, "text after the value");
	}
	keyset_done(&s->keys);
	return s->why;
}

const char *scan_value(char *text, size_t len)
{
	struct scan s = { .p = text, .end = text + len };

	return run(&s);
}

const char *scan_object(char *text, size_t len, struct scan_member *members, size_t count)
{
	struct scan s = { .p = text, .end = text + len, .members = members, .member_count = count };

	skip_space(&s);
	if (s.p == s.end || *s.p != '{')
		return "expected a JSON object";
	return run(&s);
}

bool scan_is_string(struct scan_slice s)
{
	return s.data && *s.data == '"';
}

bool scan_is_object(struct scan_slice s)
{
	return s.data && *s.data == '{';
}

bool scan_is_null(struct scan_slice s)
{
	return s.data && *s.data == 'n';
}

struct scan_slice scan_take_string(struct scan_slice raw)
{
	char *text = raw.data + 1;
	size_t len = raw.len - 2;

	len = decode(text, len, text);
	text[len] = '\0';
	return (struct scan_slice){ text, len };
}

bool scan_get_bool(struct scan_slice raw, bool *ret)
{
	if (!raw.data || (*raw.data != 't' && *raw.data != 'f'))
		return false;
	*ret = *raw.data == 't';
	return true;
}

bool scan_get_int(struct scan_slice raw, int64_t *ret)
{
	if (!raw.data || (*raw.data != '-' && (*raw.data < '0' || *raw.data > '9')))
		return false;
	for (size_t i = 1; i < raw.len; i++)
		if (raw.data[i] < '0' || raw.data[i] > '9')
			return false;
	bool is_negative = *raw.data == '-';
	uint64_t magnitude = 0;
	for (size_t i = is_negative; i < raw.len; i++)
		magnitude = magnitude * 10 + (uint64_t)(raw.data[i] - '0');
	*ret = (int64_t)(is_negative ? 0 - magnitude : magnitude);
	return true;
}
