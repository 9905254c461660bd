/* base/json.c - JSON, strict: parsing and typed access. */
#include "base/json.h"

#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/jsonguard.h"
#include "base/mem.h"
#include "base/str.h"

/* jansson recurses as deep as the text goes, so the depth is checked before it sees the text. Up to
 * the first error both agree on what is a string; after that jansson looks no further. */
static int check_depth(const char *text, size_t len, struct cordon_error **reterr)
{
	size_t depth = 0;

	for (size_t i = 0; i < len; i++) {
		switch (text[i]) {
		case '"':
			for (i++; i < len && text[i] != '"'; i++)
				if (text[i] == '\\')
					i++;
			break;
		case '[':
		case '{':
			if (++depth > JSON_MAX_DEPTH) {
				size_t line = 1, column = 1;
				for (size_t j = 0; j < i; j++, column++)
					if (text[j] == '\n') {
						line++;
						column = 0;
					}
				return err_set(reterr, CORDON_INVALID,
					       "line %zu, column %zu: more than %d levels deep",
					       line, column, JSON_MAX_DEPTH);
			}
			break;
		case ']':
		case '}':
			depth -= depth > 0;
			break;
		default:
			break;
		}
	}
	return 0;
}

int json_parse(const char *text, size_t len, size_t max_bytes, json_t **ret,
	       struct cordon_error **reterr)
{
	json_error_t e = { 0 };
	bool is_nomem;

	if (max_bytes && len > max_bytes)
		return err_set(reterr, CORDON_LIMIT,
			       "the JSON text has %zu bytes, more than the %zu allowed", len,
			       max_bytes);
	int r = check_depth(text, len, reterr);
	if (r < 0)
		return r;
	/* NUL inside strings is data (json_get_string refuses it); jansson refuses it in keys. */
	json_t *j = jsonguard_parse(text, len,
				    JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &e,
				    &is_nomem);
	if (j) {
		*ret = j;
		return 0;
	}
	/* jansson has words for everything but most of its failed allocations. */
	if (is_nomem || json_error_code(&e) == json_error_out_of_memory || !e.text[0])
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	return err_set(reterr, CORDON_INVALID, "line %d, column %d: %s", e.line, e.column, e.text);
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

static int wrong_type(const char *where, const char *key, const char *want,
		      struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_INVALID, "%s/%s must be %s", where, key, want);
}

int json_get_string(const json_t *obj, const char *where, const char *key, const char **ret,
		    struct cordon_error **reterr)
{
	const json_t *v = json_object_get(obj, key);

	if (!v)
		return 0;
	if (!json_is_string(v))
		return wrong_type(where, key, "a string", reterr);
	if (strlen(json_string_value(v)) != json_string_length(v))
		return wrong_type(where, key, "a string without NUL characters", reterr);
	*ret = json_string_value(v);
	return 0;
}

int json_get_uint(const json_t *obj, const char *where, const char *key, uint64_t *ret,
		  struct cordon_error **reterr)
{
	const json_t *v = json_object_get(obj, key);

	if (!v)
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return wrong_type(where, key, "an integer that is not negative", reterr);
	*ret = (uint64_t)json_integer_value(v);
	return 0;
}

int json_get_bool(const json_t *obj, const char *where, const char *key, bool *ret,
		  struct cordon_error **reterr)
{
	const json_t *v = json_object_get(obj, key);

	if (!v)
		return 0;
	if (!json_is_boolean(v))
		return wrong_type(where, key, "true or false", reterr);
	*ret = json_is_true(v);
	return 0;
}

int json_get_object(const json_t *obj, const char *where, const char *key, json_t **ret_borrowed,
		    struct cordon_error **reterr)
{
	json_t *v = json_object_get(obj, key);

	if (!v)
		return 0;
	if (!json_is_object(v))
		return wrong_type(where, key, "an object", reterr);
	*ret_borrowed = v;
	return 0;
}

int json_get_array(const json_t *obj, const char *where, const char *key, json_t **ret_borrowed,
		   struct cordon_error **reterr)
{
	json_t *v = json_object_get(obj, key);

	if (!v)
		return 0;
	if (!json_is_array(v))
		return wrong_type(where, key, "an array", reterr);
	*ret_borrowed = v;
	return 0;
}

int json_check_keys(const json_t *obj, const char *where, const char *const *names, size_t count,
		    struct cordon_error **reterr)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)obj, key, value)
	{
		bool known = false;
		for (size_t i = 0; i < count && !known; i++)
			known = str_eq(key, names[i]);
		if (known)
			continue;
		const char *nearest = str_nearest(key, names, count);
		if (nearest)
			return err_set(reterr, CORDON_INVALID,
				       "%s/%.64s is unknown; did you mean '%s'?", where, key,
				       nearest);
		return err_set(reterr, CORDON_INVALID, "%s/%.64s is unknown", where, key);
	}
	return 0;
}

json_t *json_string_lossy(const char *bytes, size_t len)
{
	static const char replacement[] = "\xef\xbf\xbd";
	cleanup_buf struct buf b = { 0 };

	if (str_is_utf8(bytes, len))
		return json_stringn_nocheck(bytes, len);
	buf_init(&b, SIZE_MAX);
	while (len > 0) {
		int n = str_utf8_next(bytes, len);
		int r = n > 0 ? buf_add(&b, bytes, (size_t)n) : buf_add_str(&b, replacement);
		if (r < 0)
			return NULL;
		n = n > 0 ? n : -n;
		bytes += n;
		len -= (size_t)n;
	}
	return json_stringn_nocheck(b.data, b.len);
}
