/* tools/arguments.c - checks the arguments of one call against the tool's schema. */
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "tools/numeral.h"
#include "tools/regexp.h"
#include "tools/schema.h"
#include "tools/valuetype.h"

enum { PLACE_BYTES = 160, LIST_BYTES = 400 };
/* The most that checking one call may cost, about 0.2 s. Without a bound, recursive schemas,
 * alternatives and patterns would let a guest's value make the check arbitrarily slow. */
enum { STEPS_MAX = 64 << 20, VALUE_STEPS = 16, NESTING_MAX = 200 };

/* The path of a value for messages: a.b[3]. A long path is cut. */
struct place {
	const char *tool;
	const json_t *root;
	int64_t left; /* steps left */
	int depth;    /* nesting of checks */
	char path[PLACE_BYTES];
};

static int wrong(const struct place *at, struct cordon_error **reterr, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
static int wrong(const struct place *at, struct cordon_error **reterr, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	cleanup_free char *what = str_vprintf(fmt, ap);
	va_end(ap);
	if (!what)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	return err_set(reterr, CORDON_INVALID, "Tool '%s': argument '%s' %s", at->tool, at->path,
		       what);
}

static int check_value(const json_t *schema, struct place *at, const json_t *value,
		       struct cordon_error **reterr);

/* "numeric", or "string or null" */
static void list_types(const json_t *type, char ret[static LIST_BYTES])
{
	size_t len = 0;

	ret[0] = '\0';
	if (json_is_string(type))
		(void)snprintf(ret, LIST_BYTES, "%s", json_string_value(type));
	for (size_t i = 0; i < json_array_size(type) && len < LIST_BYTES; i++)
		len += (size_t)snprintf(ret + len, LIST_BYTES - len, "%s%s", i ? " or " : "",
					json_string_value(json_array_get(type, i)));
}

static int check_type(const json_t *type, const struct place *at, const json_t *value,
		      struct cordon_error **reterr)
{
	char names[LIST_BYTES];
	const char *first = json_string_value(type);

	if (first && valuetype_fits(first, value))
		return 0;
	for (size_t i = 0; i < json_array_size(type); i++) {
		first = json_string_value(json_array_get(type, i));
		if (valuetype_fits(first, value))
			return 0;
	}
	list_types(type, names);
	return wrong(at, reterr, "must be %s, got %s", names, valuetype_name(first, value));
}

/* Equal as JSON. Also 3 equals 3.0, and a large integer equals itself in either notation. */
static bool is_same(const json_t *a, const json_t *b)
{
	if (json_is_number(a) && numeral_is(b))
		return numeral_compare(a, b) == NUMERAL_EQUAL;
	return json_equal(a, b);
}

static bool is_one_of(const json_t *list, const json_t *value)
{
	json_t *entry;
	size_t i;

	json_array_foreach((json_t *)list, i, entry)
	{
		if (is_same(entry, value))
			return true;
	}
	return false;
}

static int check_enum(const json_t *schema, const struct place *at, const json_t *value,
		      struct cordon_error **reterr)
{
	const json_t *list = json_object_get(schema, "enum");
	const json_t *fixed = json_object_get(schema, "const");

	if (list && !is_one_of(list, value)) {
		cleanup_free char *text = json_text(list, NULL);
		return wrong(at, reterr, "must be one of %.200s", text ? text : "a list");
	}
	if (fixed && !is_same(fixed, value)) {
		cleanup_free char *text = json_text(fixed, NULL);
		return wrong(at, reterr, "must be %.200s", text ? text : "a fixed value");
	}
	return 0;
}

static const struct range {
	const char *keyword, *words;
	bool takes[NUMERAL_UNORDERED +
		   1]; /* allowed results of comparing the value with the limit */
} ranges[] = {
	{ "minimum", "at least", { [NUMERAL_MORE] = true, [NUMERAL_EQUAL] = true } },
	{ "maximum", "at most", { [NUMERAL_LESS] = true, [NUMERAL_EQUAL] = true } },
	{ "exclusiveMinimum", "more than", { [NUMERAL_MORE] = true } },
	{ "exclusiveMaximum", "less than", { [NUMERAL_LESS] = true } },
};

static int check_range(const json_t *schema, const struct place *at, const json_t *value,
		       struct cordon_error **reterr)
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		const json_t *limit = json_object_get(schema, ranges[i].keyword);
		if (!limit)
			continue;
		if (str_eq(valuetype_tag(value), "array"))
			return wrong(at, reterr,
				     "must be sent as a list: the numbers of an array are not "
				     "checked against limits");
		if (!numeral_is(value) || ranges[i].takes[numeral_compare(value, limit)])
			continue;
		cleanup_free char *text = json_text(limit, NULL);
		return wrong(at, reterr, "must be %s %s", ranges[i].words, text ? text : "a limit");
	}
	return 0;
}

static uint64_t count_chars(const char *text, size_t len)
{
	uint64_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += (text[i] & 0xc0) != 0x80;
	return n;
}

static int check_count(const json_t *schema, const char *min_key, const char *max_key,
		       const struct place *at, uint64_t n, const char *unit,
		       struct cordon_error **reterr)
{
	const json_t *min = json_object_get(schema, min_key);
	const json_t *max = json_object_get(schema, max_key);

	if (min && n < (uint64_t)json_integer_value(min))
		return wrong(at, reterr, "must have at least %" JSON_INTEGER_FORMAT " %s",
			     json_integer_value(min), unit);
	if (max && n > (uint64_t)json_integer_value(max))
		return wrong(at, reterr, "must have at most %" JSON_INTEGER_FORMAT " %s",
			     json_integer_value(max), unit);
	return 0;
}

/* Checks one member or element; `at` is back where it was afterwards. */
static int check_inside(const json_t *schema, struct place *at, const char *name, size_t index,
			const json_t *value, struct cordon_error **reterr)
{
	size_t len = strlen(at->path);

	if (name)
		(void)snprintf(at->path + len, PLACE_BYTES - len, "%s%.64s", len ? "." : "", name);
	else
		(void)snprintf(at->path + len, PLACE_BYTES - len, "[%zu]", index);
	int r = check_value(schema, at, value, reterr);
	at->path[len] = '\0';
	return r;
}

/* The elements of a vector, tuple or set are in its "v". */
static const json_t *elements_of(const json_t *value)
{
	if (json_is_array(value))
		return value;
	const json_t *inside = valuetype_tag(value) ? json_object_get(value, "v") : NULL;
	return json_is_array(inside) ? inside : NULL;
}

static int check_elements(const json_t *schema, struct place *at, const json_t *value,
			  struct cordon_error **reterr)
{
	const json_t *items = json_object_get(schema, "items");
	const json_t *elements = elements_of(value);
	json_t *element;
	size_t i;

	if (!elements)
		return 0;
	int r = check_count(schema, "minItems", "maxItems", at, json_array_size(elements), "items",
			    reterr);
	if (r < 0)
		return r;
	json_array_foreach((json_t *)elements, i, element)
	{
		r = items ? check_inside(items, at, NULL, i, element, reterr)
			  : check_range(schema, at, element, reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A map with string keys is checked like an object. A map with other keys has no names to check. */
static int members_of(const json_t *value, const struct place *at, json_t **ret,
		      struct cordon_error **reterr)
{
	json_t *pair;
	size_t i;

	if (!valuetype_tag(value)) {
		*ret = json_incref((json_t *)value);
		return 0;
	}
	cleanup_json json_t *members = json_object();
	json_array_foreach(json_object_get(value, "v"), i, pair)
	{
		const char *name = json_string_value(json_array_get(pair, 0));
		if (!name || json_object_get(members, name))
			return wrong(at, reterr,
				     name ? "has the key '%.64s' twice" : "must have names as keys",
				     name);
		if (json_object_set(members, name, json_array_get(pair, 1)) < 0)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	*ret = TAKE_PTR(members);
	return 0;
}

static int check_required(const json_t *schema, const struct place *at, const json_t *value,
			  struct cordon_error **reterr)
{
	json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(schema, "required"), i, entry)
	{
		if (!json_object_get(value, json_string_value(entry)))
			return wrong(at, reterr, "lacks '%.64s'", json_string_value(entry));
	}
	return 0;
}

static bool has_members_rule(const json_t *schema)
{
	return json_object_get(schema, "properties") || json_object_get(schema, "required") ||
	       json_object_get(schema, "additionalProperties");
}

static int check_members(const json_t *schema, struct place *at, const json_t *value,
			 struct cordon_error **reterr)
{
	const json_t *properties = json_object_get(schema, "properties");
	const json_t *more = json_object_get(schema, "additionalProperties");
	const char *tag = valuetype_tag(value), *name;
	cleanup_json json_t *members = NULL;
	json_t *member;

	if (!json_is_object(value) || !has_members_rule(schema) || (tag && !str_eq(tag, "map")))
		return 0;
	int r = members_of(value, at, &members, reterr);
	if (r >= 0)
		r = check_required(schema, at, members, reterr);
	json_object_foreach(members, name, member)
	{
		const json_t *own = json_object_get(properties, name);
		if (r < 0)
			break;
		if (own)
			r = check_inside(own, at, name, 0, member, reterr);
		else if (json_is_object(more))
			r = check_inside(more, at, name, 0, member, reterr);
		else if (json_is_false(more))
			r = wrong(at, reterr, "must not have '%.64s'", name);
	}
	return r;
}

static int check_pattern(const json_t *schema, struct place *at, const json_t *value,
			 struct cordon_error **reterr)
{
	const json_t *pattern = json_object_get(schema, "pattern");
	const char *why;

	if (!pattern || !json_is_string(value))
		return 0;
	struct regexp *r =
		regexp_new(json_string_value(pattern), json_string_length(pattern), &why);
	if (!r)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	size_t len = json_string_length(value);
	at->left -= (int64_t)(len * regexp_cost(r));
	bool is_good = at->left >= 0 && regexp_is_in(r, json_string_value(value), len);
	regexp_free(r);
	if (at->left < 0)
		return wrong(at, reterr, "is too complex to be checked");
	return is_good ? 0
		       : wrong(at, reterr, "must match the pattern %.200s",
			       json_string_value(pattern));
}

/* How many of the alternatives the value fits; stops counting at `enough`. */
static size_t count_fits(const json_t *list, struct place *at, const json_t *value, size_t enough)
{
	size_t fits = 0, i;
	json_t *one;

	json_array_foreach((json_t *)list, i, one)
	{
		if (fits < enough && check_value(one, at, value, NULL) >= 0)
			fits++;
	}
	return fits;
}

/* $ref, allOf, anyOf and oneOf. */
static int check_choices(const json_t *schema, struct place *at, const json_t *value,
			 struct cordon_error **reterr)
{
	const json_t *target = schema_target(at->root, schema);
	const json_t *any = json_object_get(schema, "anyOf"),
		     *single = json_object_get(schema, "oneOf");
	json_t *one;
	size_t i;
	int r = target ? check_value(target, at, value, reterr) : 0;

	json_array_foreach(json_object_get(schema, "allOf"), i, one)
	{
		if (r >= 0)
			r = check_value(one, at, value, reterr);
	}
	if (r < 0 || (!any && !single))
		return r;
	if (json_array_size(any) == 1)
		return check_value(json_array_get(any, 0), at, value, reterr);
	size_t fits = any ? count_fits(any, at, value, 1) : 1;
	size_t exactly = single ? count_fits(single, at, value, 2) : 1;
	if (at->left < 0)
		return wrong(at, reterr, "is too complex to be checked");
	if (fits == 0 || exactly == 0)
		return wrong(at, reterr, "fits none of its alternatives, being %s",
			     valuetype_name("any", value));
	return exactly == 1 ? 0 : wrong(at, reterr, "fits more than one of its alternatives");
}

static int check_all(const json_t *schema, struct place *at, const json_t *value,
		     struct cordon_error **reterr)
{
	const json_t *type = json_object_get(schema, "type");
	int r = type ? check_type(type, at, value, reterr) : 0;

	/* Most schemas have only a type. Looking up the other keywords would cost more than the
	 * check. */
	if (type &&
	    json_object_size(schema) == 1 + (json_object_get(schema, "description") != NULL))
		return r;
	if (r >= 0)
		r = check_choices(schema, at, value, reterr);
	if (r >= 0)
		r = check_pattern(schema, at, value, reterr);
	if (r >= 0)
		r = check_enum(schema, at, value, reterr);
	if (r >= 0)
		r = check_range(schema, at, value, reterr);
	if (r >= 0 && json_is_string(value))
		r = check_count(schema, "minLength", "maxLength", at,
				count_chars(json_string_value(value), json_string_length(value)),
				"characters", reterr);
	if (r >= 0)
		r = check_elements(schema, at, value, reterr);
	return r < 0 ? r : check_members(schema, at, value, reterr);
}

static int check_value(const json_t *schema, struct place *at, const json_t *value,
		       struct cordon_error **reterr)
{
	at->left -= VALUE_STEPS;
	if (at->left < 0 || at->depth >= NESTING_MAX)
		return wrong(at, reterr, "is too complex to be checked");
	at->depth++;
	int r = check_all(schema, at, value, reterr);
	at->depth--;
	return r;
}

/* Adds 'name' to a comma-separated list, unless the list is too long already. */
static void add_name(struct buf *list, const char *name)
{
	if (list->len < LIST_BYTES)
		(void)buf_printf(list, "%s'%.64s'", list->len ? ", " : "", name);
}

static int check_names(const json_t *schema, const char *tool, const json_t *args,
		       struct cordon_error **reterr)
{
	const json_t *properties = json_object_get(schema, "properties");
	const json_t *more = json_object_get(schema, "additionalProperties");
	cleanup_buf struct buf extra = { 0 }, missing = { 0 };
	const char *name;
	json_t *entry;
	size_t i;

	buf_init(&extra, 1024);
	buf_init(&missing, 1024);
	json_object_foreach((json_t *)args, name, entry)
	{
		if (!json_object_get(properties, name) && !json_is_true(more) &&
		    !json_is_object(more))
			add_name(&extra, name);
	}
	if (extra.len > 0)
		return err_set(reterr, CORDON_INVALID, "Unexpected arguments for tool '%s': %s",
			       tool, extra.data);
	json_array_foreach(json_object_get(schema, "required"), i, entry)
	{
		if (!json_object_get(args, json_string_value(entry)))
			add_name(&missing, json_string_value(entry));
	}
	if (missing.len > 0)
		return err_set(reterr, CORDON_INVALID, "Missing arguments for tool '%s': %s", tool,
			       missing.data);
	return 0;
}

static bool is_optional_null(const json_t *schema, const char *name, const json_t *value)
{
	json_t *entry;
	size_t i;

	if (!json_is_null(value))
		return false;
	json_array_foreach(json_object_get(schema, "required"), i, entry)
	{
		if (str_eq(json_string_value(entry), name))
			return false;
	}
	return true;
}

int schema_check(const json_t *schema, const char *tool, const json_t *args,
		 struct cordon_error **reterr)
{
	const json_t *properties = json_object_get(schema, "properties");
	const json_t *more = json_object_get(schema, "additionalProperties");
	struct place at = { .tool = tool, .root = schema, .left = STEPS_MAX };
	const char *name;
	json_t *value;
	int r = check_names(schema, tool, args, reterr);

	json_object_foreach((json_t *)args, name, value)
	{
		const json_t *own = json_object_get(properties, name);
		if (r < 0)
			break;
		if (!own && json_is_object(more))
			own = more;
		if (own && !is_optional_null(schema, name, value))
			r = check_inside(own, &at, name, 0, value, reterr);
	}
	return r;
}

char *schema_refusal(const json_t *schema, const char *tool, const char *args, size_t len)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *parsed = NULL;

	if (json_parse(args, len, 0, &parsed, &e) < 0 || !json_is_object(parsed))
		return str_printf("Tool '%s': its arguments are not a JSON object", tool);
	if (schema_check(schema, tool, parsed, &e) < 0)
		return str_dup(cordon_error_message(e));
	return NULL;
}
