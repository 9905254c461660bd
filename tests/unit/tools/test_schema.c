/* unit/tools/test_schema.c - what a schema may say, and what it then lets through. */
#include "tools/schema.h"

#include "harness/test.h"

static json_t *compile(const char *args)
{
	cleanup_error struct cordon_error *e = NULL;
	json_t *schema = NULL;
	if (schema_compile("add", args, &schema, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", args, cordon_error_message(e));
	return schema;
}

/* want NULL: the arguments are good. */
static void check(const char *schema_text, const char *args_text, const char *want)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *schema = compile(schema_text), *args = NULL;
	ASSERT_EQ(json_parse(args_text, strlen(args_text), 0, &args, NULL), 0);
	int r = schema_check(schema, "add", args, &e);
	if (!want) {
		if (r < 0)
			test_fail(__FILE__, __LINE__, "%s: %s", args_text, cordon_error_message(e));
		return;
	}
	if (r >= 0)
		test_fail(__FILE__, __LINE__, "%s with %s was accepted", schema_text, args_text);
	ASSERT_EQ(r, -CORDON_INVALID);
	ASSERT_STREQ(cordon_error_message(e), want);
}

#define AB "{\"a\":\"numeric\",\"b\":\"numeric\"}"

TEST(securer_messages)
{
	check(AB, "{\"a\":1,\"b\":2.5}", NULL);
	check(AB, "{\"a\":\"hello\",\"b\":3}",
	      "Tool 'add': argument 'a' must be numeric, got character");
	check(AB, "{\"a\":1,\"b\":2,\"evil\":999}", "Unexpected arguments for tool 'add': 'evil'");
	check(AB, "{\"a\":1,\"b\":2,\"evil\":9,\"x\":1}",
	      "Unexpected arguments for tool 'add': 'evil', 'x'");
	check(AB, "{\"a\":1}", "Missing arguments for tool 'add': 'b'");
	check(NULL, "{}", NULL);
	check(NULL, "{\"x\":1}", "Unexpected arguments for tool 'add': 'x'");
	check("{\"a\":\"\",\"b\":null}", "{\"a\":1,\"b\":[{}]}", NULL);
}

TEST(r_types)
{
	static const struct {
		const char *type, *value;
		const char *got; /* NULL: fits */
	} cases[] = {
		{ "numeric", "1", NULL },
		{ "numeric", "{\"$\":\"float\",\"v\":\"nan\"}", NULL },
		{ "numeric", "{\"$\":\"vec\",\"t\":\"float\",\"v\":[1.0,null,\"inf\"]}", NULL },
		{ "numeric", "{\"$\":\"na\",\"t\":\"float\"}", NULL },
		{ "numeric", "{\"$\":\"int\",\"v\":\"123456789012345678901234567890\"}", NULL },
		{ "numeric", "true", "logical" },
		{ "numeric", "null", "NULL" },
		{ "numeric", "[1,2]", "list" },
		{ "numeric", "{\"$\":\"vec\",\"t\":\"string\",\"v\":[\"a\"]}", "character" },
		{ "character", "\"x\"", NULL },
		{ "character", "{\"$\":\"vec\",\"t\":\"string\",\"v\":[]}", NULL },
		{ "character", "1", "integer" },
		{ "character", "1.5", "numeric" },
		{ "logical", "false", NULL },
		{ "logical", "0", "integer" },
		{ "integer", "5", NULL },
		{ "integer", "5.0", NULL },
		{ "integer", "5.5", "number" },
		{ "list", "[1]", NULL },
		{ "list", "{\"x\":1}", NULL },
		{ "list", "1", "integer" },
		{ "data.frame",
		  "{\"$\":\"frame\",\"names\":[\"x\"],\"columns\":[[1,2]],\"rows\":2}", NULL },
		{ "data.frame", "{\"x\":[1,2],\"y\":[3,4]}", NULL },
		{ "data.frame", "{\"x\":[1,2],\"y\":[3]}", "list" },
		{ "data.frame", "[1]", "list" },
		/* A tag does not make it so. */
		{ "numeric", "{\"$\":\"float\",\"v\":[1]}", "another kind of value" },
		{ "numeric", "{\"$\":\"float\",\"v\":\"x\"}", "another kind of value" },
		{ "numeric", "{\"$\":\"int\",\"v\":\"1; drop\"}", "another kind of value" },
		{ "numeric", "{\"$\":\"vec\",\"t\":\"float\",\"v\":[{}]}",
		  "another kind of value" },
		{ "numeric", "{\"$\":5}", "another kind of value" },
		{ "data.frame", "{\"$\":\"frame\",\"names\":[\"x\"],\"columns\":[]}",
		  "another kind of value" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char schema[100], args[200], want[200];
		snprintf(schema, sizeof(schema), "{\"a\":\"%s\"}", cases[i].type);
		snprintf(args, sizeof(args), "{\"a\":%s}", cases[i].value);
		snprintf(want, sizeof(want), "Tool 'add': argument 'a' must be %s, got %s",
			 cases[i].type, cases[i].got ? cases[i].got : "");
		check(schema, args, cases[i].got ? want : NULL);
	}
}

TEST(json_types)
{
	check("{\"a\":\"string\"}", "{\"a\":1}",
	      "Tool 'add': argument 'a' must be string, got integer");
	check("{\"a\":\"number\"}", "{\"a\":\"1\"}",
	      "Tool 'add': argument 'a' must be number, got string");
	check("{\"a\":\"boolean\"}", "{\"a\":null}",
	      "Tool 'add': argument 'a' must be boolean, got null");
	check("{\"a\":\"array\"}", "{\"a\":{}}",
	      "Tool 'add': argument 'a' must be array, got object");
	check("{\"a\":\"array\"}", "{\"a\":{\"$\":\"tuple\",\"v\":[1]}}", NULL);
	check("{\"a\":\"object\"}", "{\"a\":[]}",
	      "Tool 'add': argument 'a' must be object, got array");
	check("{\"a\":\"null\"}", "{\"a\":null}", NULL);
	check("{\"a\":{\"type\":[\"string\",\"null\"]}}", "{\"a\":null}", NULL);
	check("{\"a\":{\"type\":[\"string\",\"null\"]}}", "{\"a\":1}",
	      "Tool 'add': argument 'a' must be string or null, got integer");
}

TEST(optional_arguments)
{
	const char *s = "{\"a\":\"number\",\"b\":{\"type\":\"string\",\"required\":false}}";
	check(s, "{\"a\":1}", NULL);
	check(s, "{\"a\":1,\"b\":\"x\"}", NULL);
	check(s, "{\"a\":1,\"b\":null}", NULL);
	check(s, "{\"a\":null}", "Tool 'add': argument 'a' must be number, got null");
	check(s, "{\"a\":1,\"b\":2}", "Tool 'add': argument 'b' must be string, got integer");
}

TEST(full_schemas)
{
	const char *s =
		"{\"type\":\"object\",\"properties\":{"
		"\"n\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":10},"
		"\"x\":{\"type\":\"number\",\"exclusiveMinimum\":0,\"exclusiveMaximum\":1},"
		"\"color\":{\"enum\":[\"red\",\"green\",3]},"
		"\"name\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":3},"
		"\"list\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"minItems\":1,"
		"\"maxItems\":2},"
		"\"inner\":{\"type\":\"object\",\"properties\":{\"k\":{\"type\":\"boolean\"}},"
		"\"required\":[\"k\"],\"additionalProperties\":false},"
		"\"map\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\"}},"
		"\"fixed\":{\"const\":7}},\"required\":[\"n\"],\"additionalProperties\":false}";
	check(s,
	      "{\"n\":1,\"x\":0.5,\"color\":\"red\",\"name\":\"\xc3\xa9\xc3\xa9\",\"list\":[\"a\"],"
	      "\"inner\":{\"k\":true},\"map\":{\"z\":1},\"fixed\":7}",
	      NULL);
	check(s, "{\"n\":1,\"color\":3.0}", NULL);
	static const struct {
		const char *args, *want;
	} bad[] = {
		{ "{}", "Missing arguments for tool 'add': 'n'" },
		{ "{\"n\":0}", "Tool 'add': argument 'n' must be at least 1" },
		{ "{\"n\":11}", "Tool 'add': argument 'n' must be at most 10" },
		{ "{\"n\":1,\"x\":0}", "Tool 'add': argument 'x' must be more than 0" },
		{ "{\"n\":1,\"x\":1}", "Tool 'add': argument 'x' must be less than 1" },
		{ "{\"n\":1,\"x\":{\"$\":\"float\",\"v\":\"nan\"}}",
		  "Tool 'add': argument 'x' must be more than 0" },
		{ "{\"n\":{\"$\":\"int\",\"v\":\"99999999999999999999\"}}",
		  "Tool 'add': argument 'n' must be at most 10" },
		{ "{\"n\":1,\"color\":\"blue\"}",
		  "Tool 'add': argument 'color' must be one of [\"red\",\"green\",3]" },
		{ "{\"n\":1,\"name\":\"a\"}",
		  "Tool 'add': argument 'name' must have at least 2 characters" },
		{ "{\"n\":1,\"name\":\"abcd\"}",
		  "Tool 'add': argument 'name' must have at most 3 characters" },
		{ "{\"n\":1,\"list\":[]}",
		  "Tool 'add': argument 'list' must have at least 1 items" },
		{ "{\"n\":1,\"list\":[\"a\",2]}",
		  "Tool 'add': argument 'list[1]' must be string, got integer" },
		{ "{\"n\":1,\"inner\":{}}", "Tool 'add': argument 'inner' lacks 'k'" },
		{ "{\"n\":1,\"inner\":{\"k\":1}}",
		  "Tool 'add': argument 'inner.k' must be boolean, got integer" },
		{ "{\"n\":1,\"inner\":{\"k\":true,\"z\":1}}",
		  "Tool 'add': argument 'inner' must not have 'z'" },
		{ "{\"n\":1,\"map\":{\"z\":\"1\"}}",
		  "Tool 'add': argument 'map.z' must be number, got string" },
		{ "{\"n\":1,\"fixed\":8}", "Tool 'add': argument 'fixed' must be 7" },
		{ "{\"n\":1,\"other\":8}", "Unexpected arguments for tool 'add': 'other'" },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		check(s, bad[i].args, bad[i].want);
	/* Only what is said to be open is open. */
	check("{\"type\":\"object\",\"properties\":{}}", "{\"x\":1}",
	      "Unexpected arguments for tool 'add': 'x'");
	check("{\"type\":\"object\",\"additionalProperties\":true}", "{\"x\":1}", NULL);
	check("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}", "{\"x\":1}",
	      "Tool 'add': argument 'x' must be string, got integer");
}

TEST(bad_schemas_are_refused)
{
	static const struct {
		const char *args, *want; /* a part of the message */
	} bad[] = {
		{ "[", "line 1" },
		{ "5", "must be an object" },
		{ "{\"a\":\"numbr\"}", "'a' has the unknown type 'numbr'; did you mean 'number'?" },
		{ "{\"a\":5}", "type must be a name or a list of names" },
		{ "{\"my arg\":\"number\"}",
		  "Argument name of tool 'add' must be a valid identifier, not \"my arg\"" },
		{ "{\"a\":{\"type\":\"string\",\"pattern\":\"x\"}}", "unsupported schema keyword" },
		{ "{\"a\":{\"anyOf\":[]}}", "unsupported schema keyword" },
		{ "{\"a\":{\"$ref\":\"#/x\"}}", "unsupported schema keyword" },
		{ "{\"a\":{\"minimum\":\"1\"}}", "limits must be numbers" },
		{ "{\"a\":{\"minLength\":-1}}", "lengths must be counts" },
		{ "{\"a\":{\"enum\":[]}}", "enum must be a list of values" },
		{ "{\"a\":{\"type\":[]}}", "type must not be an empty list" },
		{ "{\"a\":{\"items\":5}}", "must be an object" },
		{ "{\"type\":\"object\",\"properties\":[]}", "properties must be an object" },
		{ "{\"type\":\"object\",\"required\":[\"x\"]}",
		  "the required argument 'x' is not described" },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		cleanup_error struct cordon_error *e = NULL;
		json_t *schema = NULL;
		ASSERT_EQ(schema_compile("add", bad[i].args, &schema, &e), -CORDON_INVALID);
		bool is_found = false;
		for (const struct cordon_error *c = e; c; c = cordon_error_cause(c))
			is_found |= strstr(cordon_error_message(c), bad[i].want) != NULL;
		if (!is_found)
			test_fail(__FILE__, __LINE__, "%s: %s", bad[i].args,
				  cordon_error_message(e));
	}
}

TEST(names)
{
	static const char *const good[] = { "my_tool", "tool.name", ".hidden", "a", "A1" };
	static const char *const bad[] = {
		"x; system(\"id\")", "my tool",         "1tool", "tool$name", "", "_x", "a-b",
		"\xc3\xa9",          "../../etc/passwd"
	};
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		ASSERT(schema_is_name(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ASSERT(!schema_is_name(bad[i]));
	char long_name[200];
	memset(long_name, 'a', 199);
	long_name[199] = '\0';
	ASSERT(!schema_is_name(long_name) && !schema_is_name(NULL));
}

TEST(summaries)
{
	cleanup_json json_t *schema = compile(
		"{\"a\":\"number\",\"b\":{\"type\":\"string\",\"required\":false},\"c\":null}");
	cleanup_json json_t *summary = schema_summary(schema);
	cleanup_free char *text = json_text(summary, NULL);
	ASSERT_STREQ(text, "{\"a\":{\"type\":\"number\",\"required\":true},"
			   "\"b\":{\"type\":\"string\",\"required\":false},"
			   "\"c\":{\"type\":null,\"required\":true}}");
}
