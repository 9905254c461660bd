/* tools/valuetype.c - see valuetype.h. */
#include "tools/valuetype.h"

#include <math.h>

#include "base/str.h"
#include "tools/form.h"

/* The kind of a value, independent of the language's name for it. */
enum sort {
	SORT_NULL = 1 << 0,
	SORT_BOOLEAN = 1 << 1,
	SORT_INTEGER = 1 << 2,
	SORT_REAL = 1 << 3,
	SORT_STRING = 1 << 4,
	SORT_ARRAY = 1 << 5,
	SORT_OBJECT = 1 << 6,
	SORT_FRAME = 1 << 7,
	SORT_OTHER = 1 << 8, /* dates and others: only fit "any" */
	/* R's vectors, which do not fit JSON's types. */
	SORT_BOOLEANS = 1 << 9,
	SORT_INTEGERS = 1 << 10,
	SORT_REALS = 1 << 11,
	SORT_STRINGS = 1 << 12,
	SORT_BYTES = 1 << 13,
};

static const struct type {
	const char *name;
	bool is_r;
	int sorts;
} types[] = {
	{ "number", false, SORT_INTEGER | SORT_REAL },
	{ "integer", false, SORT_INTEGER | SORT_INTEGERS },
	{ "string", false, SORT_STRING },
	{ "boolean", false, SORT_BOOLEAN },
	{ "array", false, SORT_ARRAY | SORT_BOOLEANS | SORT_INTEGERS | SORT_REALS | SORT_STRINGS },
	{ "object", false, SORT_OBJECT },
	{ "null", false, SORT_NULL },
	{ "bytes", false, SORT_BYTES },
	{ "any", false, ~0 },
	{ "numeric", true, SORT_INTEGER | SORT_REAL | SORT_INTEGERS | SORT_REALS },
	{ "character", true, SORT_STRING | SORT_STRINGS },
	{ "logical", true, SORT_BOOLEAN | SORT_BOOLEANS },
	{ "list", true, SORT_ARRAY | SORT_OBJECT | SORT_FRAME },
	{ "data.frame", true, SORT_FRAME },
};

enum { TYPES = sizeof(types) / sizeof(*types) };

static const struct type *find(const char *name)
{
	for (size_t i = 0; i < TYPES; i++)
		if (str_eq(types[i].name, name))
			return &types[i];
	return NULL;
}

bool valuetype_is_known(const char *name)
{
	return find(name) != NULL;
}

const char *valuetype_nearest(const char *name)
{
	const char *names[TYPES];

	for (size_t i = 0; i < TYPES; i++)
		names[i] = types[i].name;
	return str_nearest(name, names, TYPES);
}

const char *valuetype_tag(const json_t *value)
{
	return json_string_value(json_object_get(value, "$"));
}

/* Scalars and vectors name the type of their elements in the same way. */
static int sort_of_element(const json_t *value, bool is_vector)
{
	const char *t = json_string_value(json_object_get(value, "t"));

	if (str_eq(t, "logical"))
		return is_vector ? SORT_BOOLEANS : SORT_BOOLEAN;
	if (str_eq(t, "int"))
		return is_vector ? SORT_INTEGERS : SORT_INTEGER;
	if (str_eq(t, "float"))
		return is_vector ? SORT_REALS : SORT_REAL;
	if (str_eq(t, "string"))
		return is_vector ? SORT_STRINGS : SORT_STRING;
	return SORT_OTHER;
}

static int sort_of_array(const json_t *value)
{
	const char *dtype = json_string_value(json_object_get(value, "dtype"));

	if (!dtype)
		return SORT_OTHER;
	if (str_starts(dtype, "float"))
		return SORT_REALS;
	if (str_starts(dtype, "int") || str_starts(dtype, "uint"))
		return SORT_INTEGERS;
	return str_eq(dtype, "bool") ? SORT_BOOLEANS : SORT_OTHER;
}

static int sort_of_tagged(const json_t *value, const char *tag)
{
	static const struct {
		const char *tag;
		int sort;
	} plain[] = {
		{ "int", SORT_INTEGER }, { "float", SORT_REAL },     { "decimal", SORT_REAL },
		{ "tuple", SORT_ARRAY }, { "set", SORT_ARRAY },      { "map", SORT_OBJECT },
		{ "frame", SORT_FRAME }, { "factor", SORT_STRINGS }, { "duration", SORT_REAL },
		{ "bytes", SORT_BYTES },
	};
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (str_eq(tag, plain[i].tag))
			return plain[i].sort;
	if (str_eq(tag, "vec"))
		return sort_of_element(value, true);
	if (str_eq(tag, "na"))
		return sort_of_element(value, false);
	return str_eq(tag, "array") ? sort_of_array(value) : SORT_OTHER;
}

static int sort_of(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_NULL:
		return SORT_NULL;
	case JSON_TRUE:
	case JSON_FALSE:
		return SORT_BOOLEAN;
	case JSON_INTEGER:
		return SORT_INTEGER;
	case JSON_REAL:
		return SORT_REAL;
	case JSON_STRING:
		return SORT_STRING;
	case JSON_ARRAY:
		return SORT_ARRAY;
	case JSON_OBJECT:
		break;
	}
	if (!json_object_get(value, "$"))
		return SORT_OBJECT;
	const char *tag = valuetype_tag(value);
	if (str_eq(tag, "attr") && json_object_get(value, "v")) /* attributes change no type */
		return sort_of(json_object_get(value, "v"));
	return tag && form_is_valid(value, tag) ? sort_of_tagged(value, tag) : SORT_OTHER;
}

/* A language without data frames sends columns as lists of equal length. */
static bool is_table(const json_t *value)
{
	const char *key;
	json_t *column;
	size_t rows = SIZE_MAX;

	json_object_foreach((json_t *)value, key, column)
	{
		if (!json_is_array(column) || (rows != SIZE_MAX && json_array_size(column) != rows))
			return false;
		rows = json_array_size(column);
	}
	return rows != SIZE_MAX;
}

bool valuetype_fits(const char *type, const json_t *value)
{
	const struct type *t = find(type);
	int sort = sort_of(value);

	if (!t)
		return false;
	if (t->sorts & sort)
		return true;
	if (str_eq(type, "integer") && json_is_real(value)) /* R writes 5 as 5.0 */
		return json_real_value(value) == floor(json_real_value(value));
	return str_eq(type, "data.frame") && sort == SORT_OBJECT && is_table(value);
}

const char *valuetype_name(const char *type, const json_t *value)
{
	static const struct {
		int sorts;
		const char *json, *r;
	} names[] = {
		{ SORT_NULL, "null", "NULL" },          { SORT_BOOLEAN, "boolean", "logical" },
		{ SORT_INTEGER, "integer", "integer" }, { SORT_REAL, "number", "numeric" },
		{ SORT_STRING, "string", "character" }, { SORT_ARRAY, "array", "list" },
		{ SORT_OBJECT, "object", "list" },      { SORT_FRAME, "data frame", "data.frame" },
		{ SORT_BOOLEANS, "vector", "logical" }, { SORT_INTEGERS, "vector", "integer" },
		{ SORT_REALS, "vector", "numeric" },    { SORT_STRINGS, "vector", "character" },
		{ SORT_BYTES, "bytes", "raw" },
	};
	const struct type *t = find(type);
	int sort = sort_of(value);

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].sorts & sort)
			return t && t->is_r ? names[i].r : names[i].json;
	return "another kind of value";
}
