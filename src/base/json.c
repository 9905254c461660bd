/* base/json.c - typed access to JSON values. */
#include "base/json.h"

#include <string.h>

#include "base/buf.h"
#include "base/str.h"

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
