/* base/jsonparse.c - builds jansson values from JSON text. jansson's own parser is not used: when
 * memory runs out, its lexer does not notice that a token's buffer could not grow, and reads past
 * it. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/jsonnumber.h"
#include "base/jsonscan.h"
#include "base/mem.h"
#include "base/str.h"

static const char no_memory[] = "out of memory";

static json_t *build_value(struct jsonscan *s);

static json_t *made(struct jsonscan *s, json_t *j)
{
	if (!j)
		(void)jsonscan_fail(s, no_memory);
	return j;
}

/* NUL inside strings is allowed as data; json_get_string refuses it. */
static json_t *build_string(struct jsonscan *s)
{
	const char *text = s->p + 1;
	cleanup_free char *decoded = NULL;

	if (!jsonscan_string(s))
		return NULL;
	size_t len = (size_t)(s->p - text) - 1;
	if (s->has_escape) {
		decoded = mem_alloc(len);
		if (!decoded)
			return made(s, NULL);
		len = jsonscan_decode(text, len, 0, decoded);
	}
	return made(s, json_stringn_nocheck(decoded ? decoded : text, len));
}

/* strtod() independent of the host program's locale, which may have another decimal point. */
static json_t *build_real(struct jsonscan *s, const char *text, size_t len)
{
	char few[64];
	cleanup_free char *many = len < sizeof(few) ? NULL : mem_alloc(len + 1);
	char *copy = len < sizeof(few) ? few : many;

	if (!copy)
		return made(s, NULL);
	memcpy(copy, text, len);
	copy[len] = '\0';
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!plain)
		return made(s, NULL);
	double value = strtod_l(copy, NULL, plain);
	freelocale(plain);
	return made(s, json_real(value));
}

static json_t *build_number(struct jsonscan *s)
{
	const char *text = s->p;

	if (!jsonscan_number(s))
		return NULL;
	size_t len = (size_t)(s->p - text);
	return s->is_real ? build_real(s, text, len)
			  : made(s, json_integer(jsonnumber_int(text, len)));
}

static int refuse(struct jsonscan *s, const char *why)
{
	(void)jsonscan_fail(s, why);
	return -1;
}

/* 0, or -1 with s->why set. */
static int add_member(struct jsonscan *s, json_t *object)
{
	const char *key;
	size_t len;
	cleanup_free char *decoded = NULL;

	if (!jsonscan_key(s, &key, &len))
		return -1;
	if (s->has_escape) {
		decoded = mem_alloc(len);
		if (!decoded)
			return refuse(s, no_memory);
		len = jsonscan_decode(key, len, 0, decoded);
	}
	const char *start = key;
	key = decoded ? decoded : key;
	if (json_object_getn(object, key, len)) {
		s->p = start - 1;
		return refuse(s, "duplicate object key");
	}
	json_t *value = jsonscan_colon(s) ? build_value(s) : NULL;
	if (!value)
		return -1;
	if (json_object_setn_new_nocheck(object, key, len, value) < 0)
		return refuse(s, no_memory);
	return 0;
}

static int add_item(struct jsonscan *s, json_t *array)
{
	json_t *value = build_value(s);

	if (!value)
		return -1;
	if (json_array_append_new(array, value) < 0)
		return refuse(s, no_memory);
	return 0;
}

static json_t *build_container(struct jsonscan *s, char close)
{
	bool is_empty, more = true;

	if (!jsonscan_enter(s, close, &is_empty))
		return NULL;
	cleanup_json json_t *j = made(s, close == '}' ? json_object() : json_array());
	while (j && !is_empty && more)
		if ((close == '}' ? add_member(s, j) : add_item(s, j)) < 0 ||
		    !jsonscan_more(s, close, &more))
			return NULL;
	return TAKE_PTR(j);
}

static json_t *build_value(struct jsonscan *s)
{
	switch (s->p < s->end ? *s->p : '\0') {
	case '{':
		return build_container(s, '}');
	case '[':
		return build_container(s, ']');
	case '"':
		return build_string(s);
	case 't':
		return jsonscan_word(s, "true") ? json_true() : NULL;
	case 'f':
		return jsonscan_word(s, "false") ? json_false() : NULL;
	case 'n':
		return jsonscan_word(s, "null") ? json_null() : NULL;
	default:
		return build_number(s);
	}
}

/* Reports the position, counted in characters. */
static int fail(const struct jsonscan *s, const char *text, struct cordon_error **reterr)
{
	size_t line = 1, column = 1;

	if (s->why == no_memory)
		return err_set(reterr, CORDON_NOMEM, "%s", no_memory);
	for (const char *p = text; p < s->p; p++) {
		column = *p == '\n' ? 1 : column + ((*p & 0xc0) != 0x80);
		line += *p == '\n';
	}
	if (s->p == s->end)
		return err_set(reterr, CORDON_INVALID,
			       "line %zu, column %zu: the text ends too early", line, column);
	if (str_starts(s->why, JSONSCAN_INVALID) && *s->p > ' ' && *s->p < 127 &&
	    !strchr("-0123456789", *s->p))
		return err_set(reterr, CORDON_INVALID, "line %zu, column %zu: unexpected '%c'",
			       line, column, *s->p);
	return err_set(reterr, CORDON_INVALID, "line %zu, column %zu: %s", line, column, s->why);
}

int json_parse(const char *text, size_t len, size_t max_bytes, json_t **ret,
	       struct cordon_error **reterr)
{
	struct jsonscan s = { .p = text, .end = text + len };

	if (max_bytes && len > max_bytes)
		return err_set(reterr, CORDON_LIMIT,
			       "the JSON text has %zu bytes, more than the %zu allowed", len,
			       max_bytes);
	jsonscan_space(&s);
	cleanup_json json_t *j = build_value(&s);
	if (!j || !jsonscan_end(&s))
		return fail(&s, text, reterr);
	*ret = TAKE_PTR(j);
	return 0;
}

int json_parse_file(const char *path, size_t max_bytes, json_t **ret, struct cordon_error **reterr)
{
	cleanup_buf struct buf b = { 0 };
	int r = file_load(path, max_bytes, &b, reterr);
	if (r < 0)
		return r;
	r = json_parse(b.data, b.len, max_bytes, ret, reterr);
	return r < 0 ? err_wrap(reterr, r, "'%s' is not valid JSON", path) : 0;
}
