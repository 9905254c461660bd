/* tools/form.c - see form.h. */
#include "tools/form.h"

#include <string.h>

#include "base/str.h"

static bool is_not_finite(const json_t *v)
{
	const char *s = json_string_value(v);

	return str_eq(s, "nan") || str_eq(s, "inf") || str_eq(s, "-inf");
}

/* Digits with an optional sign; with_point: also a point and an exponent. */
static bool is_numeral(const json_t *v, bool with_point)
{
	const char *s = json_string_value(v);
	size_t len = s ? json_string_length(v) : 0, digits = 0;

	if (len == 0 || len > 4096)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool is_digit = s[i] >= '0' && s[i] <= '9';
		bool is_sign = (s[i] == '-' || s[i] == '+') && (i == 0 || with_point);
		bool is_point = with_point && (s[i] == '.' || s[i] == 'e' || s[i] == 'E');
		digits += is_digit;
		if (!is_digit && !is_sign && !is_point)
			return false;
	}
	return digits > 0;
}

static bool is_element(const char *t, const json_t *v)
{
	if (json_is_null(v))
		return true;
	if (str_eq(t, "logical"))
		return json_is_boolean(v);
	if (str_eq(t, "int"))
		return json_is_integer(v);
	if (str_eq(t, "float"))
		return json_is_number(v) || is_not_finite(v);
	if (str_eq(t, "string"))
		return json_is_string(v);
	return str_eq(t, "complex") && json_array_size(v) == 2;
}

static bool is_vec(const json_t *value)
{
	const char *t = json_string_value(json_object_get(value, "t"));
	const json_t *v = json_object_get(value, "v"), *names = json_object_get(value, "names");
	json_t *element;
	size_t i;

	if (!t || !json_is_array(v) || !is_element(t, json_null()))
		return false;
	json_array_foreach((json_t *)v, i, element)
	{
		if (!is_element(t, element))
			return false;
	}
	return !names || json_is_null(names) || json_array_size(names) == json_array_size(v);
}

static bool is_frame(const json_t *value)
{
	const json_t *names = json_object_get(value, "names");
	const json_t *columns = json_object_get(value, "columns");
	json_t *entry;
	size_t i;

	if (!json_is_array(names) || !json_is_array(columns) ||
	    json_array_size(names) != json_array_size(columns))
		return false;
	json_array_foreach((json_t *)names, i, entry)
	{
		if (!json_is_string(entry))
			return false;
	}
	json_array_foreach((json_t *)columns, i, entry)
	{
		if (!json_is_object(entry) && !json_is_array(entry))
			return false;
	}
	return true;
}

static bool is_map(const json_t *v)
{
	json_t *pair;
	size_t i;

	json_array_foreach((json_t *)v, i, pair)
	{
		if (json_array_size(pair) != 2)
			return false;
	}
	return json_is_array(v);
}

static bool is_array(const json_t *value)
{
	const json_t *shape = json_object_get(value, "shape");
	json_t *size;
	size_t i;

	json_array_foreach((json_t *)shape, i, size)
	{
		if (!json_is_integer(size) || json_integer_value(size) < 0)
			return false;
	}
	return json_is_array(shape) && json_is_string(json_object_get(value, "v"));
}

/* Checks characters and padding of base64; the decoder checks the rest. */
static bool is_base64(const json_t *v)
{
	static const char set[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *s = json_string_value(v);
	size_t len = s ? json_string_length(v) : 1, good = s ? strspn(s, set) : 0;

	return len % 4 == 0 && len - good <= 2 && strspn(s + good, "=") == len - good;
}

bool form_is_valid(const json_t *value, const char *tag)
{
	const json_t *v = json_object_get(value, "v");

	if (str_eq(tag, "int"))
		return is_numeral(v, false);
	if (str_eq(tag, "float"))
		return is_not_finite(v);
	if (str_eq(tag, "decimal"))
		return is_numeral(v, true);
	if (str_eq(tag, "duration"))
		return json_is_number(v);
	if (str_eq(tag, "bytes"))
		return is_base64(v);
	if (str_eq(tag, "na"))
		return json_is_string(json_object_get(value, "t"));
	if (str_eq(tag, "vec"))
		return is_vec(value);
	if (str_eq(tag, "tuple") || str_eq(tag, "set"))
		return json_is_array(v);
	if (str_eq(tag, "map"))
		return is_map(v);
	if (str_eq(tag, "frame"))
		return is_frame(value);
	if (str_eq(tag, "factor"))
		return json_is_array(v) && json_is_array(json_object_get(value, "levels"));
	return str_eq(tag, "array") && is_array(value);
}
