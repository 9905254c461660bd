/* tools/schema.c - see schema.h. Compiles a tool's schema. */
#include "tools/schema.h"

#include <string.h>

#include "base/str.h"
#include "tools/regexp.h"
#include "tools/valuetype.h"

enum { NAME_MAX_CHARS = 128, SCHEMA_MAX_BYTES = 1 << 20, CHAIN_MAX = 64, SUMMARY_STEPS = 1000 };

static const char *const keywords[] = {
	"type",
	"enum",
	"const",
	"required",
	"properties",
	"items",
	"minimum",
	"maximum",
	"exclusiveMinimum",
	"exclusiveMaximum",
	"minLength",
	"maxLength",
	"minItems",
	"maxItems",
	"additionalProperties",
	"description",
	"title",
	"default",
	"examples",
	"$schema",
	"$id",
	"$comment",
	"format",
	"deprecated",
	"anyOf",
	"oneOf",
	"allOf",
	"pattern",
	"$ref",
	"$defs",
	"definitions",
};

/* Not allowed at the top level: a call's arguments are always an object with named members. */
static const char *const inner_keywords[] = { "enum",  "const", "items",   "anyOf",
					      "oneOf", "allOf", "pattern", "$ref" };
static const char *const choices[] = { "anyOf", "oneOf", "allOf" };

bool schema_is_name(const char *name)
{
	size_t len = name ? strlen(name) : 0;

	if (len == 0 || len > NAME_MAX_CHARS)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = name[i];
		bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.';
		bool is_later = (c >= '0' && c <= '9') || c == '_';
		if (!is_letter && !(i > 0 && is_later))
			return false;
	}
	return true;
}

/* State of compiling one schema. The JSON parser bounds its nesting. */
struct compile {
	const char *tool;
	const json_t *root;
};

static int refuse(struct cordon_error **reterr, const char *tool, const char *where,
		  const char *what)
{
	return err_set(reterr, CORDON_INVALID, "Tool '%s': schema%s%s: %s", tool,
		       *where ? " of " : "", where, what);
}

static int check_type(const char *tool, const char *where, const json_t *type,
		      struct cordon_error **reterr)
{
	const char *name = json_string_value(type);

	if (!name)
		return refuse(reterr, tool, where, "type must be a name or a list of names");
	if (valuetype_is_known(name))
		return 0;
	const char *nearest = valuetype_nearest(name);
	return err_set(reterr, CORDON_INVALID, "Tool '%s': '%s' has the unknown type '%.64s'%s%s%s",
		       tool, where, name, nearest ? "; did you mean '" : "", nearest ? nearest : "",
		       nearest ? "'?" : "");
}

static int check_types(const char *tool, const char *where, const json_t *type,
		       struct cordon_error **reterr)
{
	if (!type)
		return 0;
	if (!json_is_array(type))
		return check_type(tool, where, type, reterr);
	if (json_array_size(type) == 0)
		return refuse(reterr, tool, where, "type must not be an empty list");
	for (size_t i = 0; i < json_array_size(type); i++) {
		int r = check_type(tool, where, json_array_get(type, i), reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Checks keywords whose values are numbers, counts, lists or names. */
static int check_values(const char *tool, const char *where, const json_t *schema,
			struct cordon_error **reterr)
{
	static const char *const numbers[] = { "minimum", "maximum", "exclusiveMinimum",
					       "exclusiveMaximum" };
	static const char *const counts[] = { "minLength", "maxLength", "minItems", "maxItems" };

	for (size_t i = 0; i < 4; i++) {
		const json_t *n = json_object_get(schema, numbers[i]);
		const json_t *c = json_object_get(schema, counts[i]);
		if (n && !json_is_number(n))
			return refuse(reterr, tool, where, "limits must be numbers");
		if (c && (!json_is_integer(c) || json_integer_value(c) < 0))
			return refuse(reterr, tool, where, "lengths must be counts");
	}
	const json_t *list = json_object_get(schema, "enum");
	if (list && json_array_size(list) == 0)
		return refuse(reterr, tool, where, "enum must be a list of values");
	return 0;
}

static int check_pattern(const char *tool, const char *where, const json_t *pattern,
			 struct cordon_error **reterr)
{
	const char *why = "it must be a string";

	if (!pattern)
		return 0;
	struct regexp *r = json_is_string(pattern) ? regexp_new(json_string_value(pattern),
								json_string_length(pattern), &why)
						   : NULL;
	if (!r)
		return err_set(reterr, CORDON_INVALID, "Tool '%s': schema of %s: pattern: %s", tool,
			       *where ? where : "it", why);
	regexp_free(r);
	return 0;
}

const json_t *schema_target(const json_t *root, const json_t *schema)
{
	static const char *const places[] = { "$defs", "definitions" };
	const char *ref = json_string_value(json_object_get(schema, "$ref"));

	if (!ref || str_eq(ref, "#"))
		return ref ? root : NULL;
	for (size_t i = 0; i < 2; i++) {
		size_t len = strlen(places[i]);
		if (str_starts(ref, "#/") && strncmp(ref + 2, places[i], len) == 0 &&
		    ref[2 + len] == '/')
			return json_object_get(json_object_get(root, places[i]), ref + 3 + len);
	}
	return NULL;
}

/* Whether a schema refers to itself for the same value, so that checking would never end. steps:
 * how many references may still be followed. */
static bool is_endless(const json_t *root, const json_t *schema, int depth, int *steps)
{
	const json_t *target = schema_target(root, schema);

	if (depth > CHAIN_MAX || --*steps < 0)
		return true;
	if (target && is_endless(root, target, depth + 1, steps))
		return true;
	for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++) {
		json_t *one;
		size_t k;
		json_array_foreach(json_object_get(schema, choices[i]), k, one)
		{
			if (is_endless(root, one, depth + 1, steps))
				return true;
		}
	}
	return false;
}

static int check_schema(struct compile *c, const char *where, const json_t *schema,
			struct cordon_error **reterr);

static int check_reference(struct compile *c, const char *where, const json_t *schema,
			   struct cordon_error **reterr)
{
	int steps = 10000;

	if (json_object_get(schema, "$ref") && !json_is_object(schema_target(c->root, schema)))
		return refuse(reterr, c->tool, where,
			      "$ref must be \"#\", or \"#/$defs/NAME\" of something that is there");
	if (is_endless(c->root, schema, 0, &steps))
		return refuse(reterr, c->tool, where, "it refers to itself without end");
	return 0;
}

/* anyOf, oneOf and allOf: lists of schemas. $defs and definitions: objects of them. */
static int check_parts(struct compile *c, const char *where, const json_t *schema,
		       struct cordon_error **reterr)
{
	static const char *const places[] = { "$defs", "definitions" };
	const char *name;
	json_t *one;
	size_t k;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < sizeof(choices) / sizeof(*choices); i++) {
		json_t *list = json_object_get(schema, choices[i]);
		if (list && json_array_size(list) == 0)
			return refuse(reterr, c->tool, where,
				      "anyOf, oneOf and allOf must be lists of schemas");
		json_array_foreach(list, k, one) r =
			r < 0 ? r : check_schema(c, where, one, reterr);
	}
	for (size_t i = 0; r >= 0 && i < 2; i++) {
		json_t *defs = json_object_get(schema, places[i]);
		if (defs && (!json_is_object(defs) || schema != c->root))
			return refuse(reterr, c->tool, where,
				      "$defs must be an object of schemas, at the top");
		json_object_foreach(defs, name, one) r =
			r < 0 ? r : check_schema(c, name, one, reterr);
	}
	return r;
}

static int check_properties(struct compile *c, const char *where, const json_t *schema,
			    struct cordon_error **reterr)
{
	const char *tool = c->tool;
	json_t *properties = json_object_get(schema, "properties");
	json_t *required = json_object_get(schema, "required"), *entry;
	const char *name;
	size_t i;

	if (properties && !json_is_object(properties))
		return refuse(reterr, tool, where, "properties must be an object");
	json_object_foreach(properties, name, entry)
	{
		int r = check_schema(c, name, entry, reterr);
		if (r < 0)
			return r;
	}
	if (required && !json_is_array(required))
		return refuse(reterr, tool, where, "required must be a list of names");
	json_array_foreach(required, i, entry)
	{
		if (!json_is_string(entry))
			return refuse(reterr, tool, where, "required must be a list of names");
	}
	return 0;
}

static int check_schema(struct compile *c, const char *where, const json_t *schema,
			struct cordon_error **reterr)
{
	const char *tool = c->tool;
	const json_t *more = json_object_get(schema, "additionalProperties");
	const json_t *items = json_object_get(schema, "items");

	if (!json_is_object(schema))
		return refuse(reterr, tool, where, "must be an object");
	int r = json_check_keys(schema, where, keywords, sizeof(keywords) / sizeof(*keywords),
				reterr);
	if (r < 0)
		return err_wrap(reterr, r, "Tool '%s': unsupported schema keyword", tool);
	r = check_types(tool, where, json_object_get(schema, "type"), reterr);
	if (r >= 0)
		r = check_values(tool, where, schema, reterr);
	if (r >= 0)
		r = check_pattern(tool, where, json_object_get(schema, "pattern"), reterr);
	if (r >= 0)
		r = check_properties(c, where, schema, reterr);
	if (r >= 0 && items)
		r = check_schema(c, where, items, reterr);
	if (r >= 0 && more && !json_is_boolean(more))
		r = check_schema(c, where, more, reterr);
	if (r >= 0)
		r = check_parts(c, where, schema, reterr);
	return r < 0 ? r : check_reference(c, where, schema, reterr);
}

static int check_top(const char *tool, const json_t *schema, struct cordon_error **reterr)
{
	for (size_t i = 0; i < sizeof(inner_keywords) / sizeof(*inner_keywords); i++)
		if (json_object_get(schema, inner_keywords[i]))
			return err_set(reterr, CORDON_INVALID,
				       "Tool '%s': schema: '%s' is not supported at the top level, "
				       "which names the arguments",
				       tool, inner_keywords[i]);
	return 0;
}

static bool is_full_form(const json_t *args)
{
	return str_eq(json_string_value(json_object_get(args, "type")), "object") ||
	       json_is_object(json_object_get(args, "properties")) ||
	       json_object_get(args, "$schema");
}

/* Turns one argument of the short form into a schema. "required" moves to the list of the
 * object. */
static json_t *expand_one(const json_t *entry, bool *ret_required)
{
	*ret_required = true;
	if (json_is_object(entry)) {
		json_t *copy = json_deep_copy(entry);
		json_t *required = json_object_get(copy, "required");
		if (json_is_boolean(required)) {
			*ret_required = json_is_true(required);
			(void)json_object_del(copy, "required");
		}
		return copy;
	}
	const char *type = json_string_value(entry);
	if (json_is_null(entry) || (type && !*type))
		return json_object(); /* any type */
	return json_pack("{s:O}", "type", entry);
}

static json_t *expand(const json_t *args)
{
	cleanup_json json_t *properties = json_object(), *required = json_array();
	const char *name;
	json_t *entry;

	json_object_foreach((json_t *)args, name, entry)
	{
		bool is_required;
		json_t *one = expand_one(entry, &is_required);
		if (!one || json_object_set_new(properties, name, one) < 0)
			return NULL;
		if (is_required && json_array_append_new(required, json_string(name)) < 0)
			return NULL;
	}
	return json_pack("{s:s,s:O,s:O}", "type", "object", "properties", properties, "required",
			 required);
}

static int check_names(const char *tool, const json_t *schema, struct cordon_error **reterr)
{
	json_t *properties = json_object_get(schema, "properties"), *entry;
	const char *name;
	size_t i;

	json_object_foreach(properties, name, entry)
	{
		if (!schema_is_name(name))
			return err_set(reterr, CORDON_INVALID,
				       "Argument name of tool '%s' must be a valid identifier, "
				       "not \"%.64s\"",
				       tool, name);
	}
	json_array_foreach(json_object_get(schema, "required"), i, entry)
	{
		if (!json_object_get(properties, json_string_value(entry)))
			return err_set(reterr, CORDON_INVALID,
				       "Tool '%s': the required argument '%.64s' is not described",
				       tool, json_string_value(entry));
	}
	return 0;
}

int schema_compile(const char *tool, const char *args_json, json_t **ret,
		   struct cordon_error **reterr)
{
	cleanup_json json_t *args = NULL, *schema = NULL;
	const char *text = args_json ? args_json : "{}";
	int r = json_parse(text, strlen(text), SCHEMA_MAX_BYTES, &args, reterr);

	if (r < 0)
		return err_wrap(reterr, r, "Tool '%s': the description of its arguments", tool);
	if (!json_is_object(args) && !(json_is_array(args) && json_array_size(args) == 0))
		return refuse(reterr, tool, "", "must be an object");
	schema = is_full_form(args) ? json_incref(args) : expand(args);
	if (!schema)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	struct compile c = { .tool = tool, .root = schema };
	r = check_schema(&c, "", schema, reterr);
	if (r >= 0)
		r = check_top(tool, schema, reterr);
	if (r >= 0)
		r = check_names(tool, schema, reterr);
	if (r >= 0)
		*ret = TAKE_PTR(schema);
	return r;
}

static bool is_required(const json_t *schema, const char *name)
{
	json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(schema, "required"), i, entry)
	{
		if (str_eq(json_string_value(entry), name))
			return true;
	}
	return false;
}

/* The type that a schema declares, following references; a copy, since sessions in other threads
 * read the same schema. NULL: none, or too many steps away. */
static json_t *type_of(const json_t *root, const json_t *schema, int *steps)
{
	const json_t *own = json_object_get(schema, "type"), *target = schema_target(root, schema);

	if (own || --*steps < 0)
		return json_deep_copy(own);
	if (target)
		return type_of(root, target, steps);
	const json_t *list = json_object_get(schema, "anyOf");
	list = list ? list : json_object_get(schema, "oneOf");
	if (!list)
		return NULL;
	cleanup_json json_t *all = json_array();
	json_t *one;
	size_t i;
	json_array_foreach((json_t *)list, i, one)
	{
		cleanup_json json_t *type = type_of(root, one, steps);
		if (json_is_array(type) ? json_array_extend(all, type) < 0
					: !type || json_array_append(all, type) < 0)
			return NULL;
	}
	return TAKE_PTR(all);
}

json_t *schema_summary(const json_t *schema)
{
	cleanup_json json_t *summary = json_object();
	const char *name;
	json_t *entry;

	json_object_foreach(json_object_get(schema, "properties"), name, entry)
	{
		int steps = SUMMARY_STEPS;
		cleanup_json json_t *type = type_of(schema, entry, &steps);
		json_t *text = json_object_get(entry, "description");
		json_t *one = json_pack("{s:O?,s:b}", "type", type, "required",
					is_required(schema, name));
		if (one && json_is_string(text))
			(void)json_object_set_new(one, "description", json_deep_copy(text));
		if (!one || json_object_set_new(summary, name, one) < 0)
			return NULL;
	}
	return TAKE_PTR(summary);
}
