/* inside/lib/wire_json.c - see wire_json.h. */
#include "inside/lib/wire_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/jsonscan.h"

static struct jsonscan scan_of(const char *p, const char *end)
{
	struct jsonscan s = { .p = p, .end = end, .is_lenient = true };

	jsonscan_space(&s);
	return s;
}

bool json_check(const char *text, size_t len)
{
	struct jsonscan s = scan_of(text, text + len);

	return jsonscan_value(&s) && jsonscan_end(&s);
}

/* ---- reading what was checked */

char json_kind(struct json v)
{
	if (!v.at || !v.len)
		return 0;
	return strchr("{[\"tfn", *v.at) ? *v.at : '0';
}

bool json_each(struct json c, const char **at, struct json *ret_key, struct json *ret_value)
{
	if (json_kind(c) != '{' && json_kind(c) != '[')
		return false;
	struct jsonscan s = scan_of(*at ? *at : c.at + 1, c.at + c.len);
	if (*s.p == ',') {
		s.p++;
		jsonscan_space(&s);
	}
	if (*s.p == '}' || *s.p == ']')
		return false;
	*ret_key = (struct json){ 0 };
	if (*c.at == '{') {
		const char *key = s.p;
		(void)jsonscan_string(&s);
		*ret_key = (struct json){ key, (size_t)(s.p - key) };
		(void)jsonscan_colon(&s);
	}
	const char *value = s.p;
	(void)jsonscan_value(&s);
	*ret_value = (struct json){ value, (size_t)(s.p - value) };
	*at = s.p;
	return true;
}

void json_string(struct json v, struct bytes *ret)
{
	if (json_kind(v) != '"')
		return;
	char *out = bytes_room(ret, v.len);
	ret->len += jsonscan_decode(v.at + 1, v.len - 2, 0, out);
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
	if (!v.at || json_kind(v) != '"')
		return false;
	if (!memchr(v.at, '\\', v.len))
		return v.len == n + 2 && !memcmp(v.at + 1, text, n);
	struct bytes b = { 0 };
	json_string(v, &b);
	bool same = b.len == n && (!n || !memcmp(b.data, text, n));
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

bool json_is_utf8(const char *data, size_t len)
{
	for (size_t i = 0, n; i < len; i += n)
		if (!(n = jsonscan_utf8(data + i, len - i)))
			return false;
	return true;
}

void json_quote(struct bytes *b, const char *data, size_t len)
{
	char escape[JSONSCAN_ESCAPE_SIZE];
	size_t plain = 0; /* start of a run of characters that need no escape */
	bytes_char(b, '"');
	for (size_t i = 0, n; i < len; i += n) {
		unsigned char c = (unsigned char)data[i];
		n = jsonscan_utf8(data + i, len - i);
		if (n && c >= 0x20 && c != '"' && c != '\\')
			continue;
		bytes_add(b, data + plain, i - plain);
		if (n)
			bytes_add(b, escape, jsonscan_escape(c, escape));
		else
			bytes_text(b, "\xef\xbf\xbd");
		n = n ? n : 1;
		plain = i + n;
	}
	bytes_add(b, data + plain, len - plain);
	bytes_char(b, '"');
}
