/* unit/tools/test_schema.c - which schemas are valid, and which arguments they accept. */
#include "tools/schema.h"

#include "base/str.h"
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
		{ "numeric", "{\"$\":\"attr\",\"v\":1.5,\"attr\":[[\"class\",\"odd\"]]}", NULL },
		{ "numeric", "{\"$\":\"attr\",\"v\":\"a\"}", "character" },
		{ "list", "{\"$\":\"attr\",\"v\":{\"a\":1},\"attr\":[[\"class\",\"lm\"]]}", NULL },
		{ "numeric", "{\"$\":\"attr\"}", "another kind of value" },
		{ "numeric", "{\"$\":\"handle\",\"id\":\"x\"}", "another kind of value" },
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

/* Doubles end at 2^53; integers, tagged integers and decimals do not. */
TEST(exact_numbers)
{
	static const struct {
		const char *schema, *value;
		bool is_good;
	} cases[] = {
		{ "\"enum\":[9007199254740992]", "9007199254740992", true },
		{ "\"enum\":[9007199254740992]", "9007199254740993", false },
		{ "\"enum\":[9007199254740993]", "9007199254740992.0", false },
		{ "\"enum\":[9007199254740992]", "9007199254740992.0", true },
		{ "\"enum\":[9223372036854775807]", "9223372036854775808.0", false },
		{ "\"enum\":[5]", "{\"$\":\"int\",\"v\":\"5\"}", true },
		{ "\"enum\":[5]", "{\"$\":\"int\",\"v\":\"6\"}", false },
		{ "\"enum\":[0]", "-0.0", true },
		{ "\"const\":9007199254740992", "9007199254740993", false },
		{ "\"const\":7", "7.0", true },
		{ "\"maximum\":9007199254740992", "9007199254740993", false },
		{ "\"maximum\":9007199254740992.0", "9007199254740993", false },
		{ "\"maximum\":9007199254740993", "9007199254740993", true },
		{ "\"maximum\":9223372036854775807", "9223372036854775808.0", false },
		{ "\"maximum\":9223372036854775807", "9223372036854775807", true },
		{ "\"maximum\":1e300", "9223372036854775807", true },
		{ "\"minimum\":-9007199254740992", "-9007199254740993", false },
		{ "\"minimum\":-9223372036854775808", "-9223372036854775808.0", true },
		{ "\"minimum\":-9223372036854775807", "-9223372036854775808.0", false },
		{ "\"minimum\":2.5", "2", false },
		{ "\"minimum\":2.5", "3", true },
		{ "\"maximum\":-2.5", "-2", false },
		{ "\"maximum\":-2.5", "-3", true },
		{ "\"exclusiveMinimum\":9007199254740992", "9007199254740993", true },
		{ "\"exclusiveMinimum\":9007199254740993", "9007199254740993", false },
		{ "\"exclusiveMaximum\":9007199254740993", "9007199254740992", true },
		{ "\"exclusiveMaximum\":9007199254740993.0", "9007199254740992", false },
		{ "\"maximum\":9223372036854775807",
		  "{\"$\":\"int\",\"v\":\"9223372036854775808\"}", false },
		{ "\"maximum\":9223372036854775807",
		  "{\"$\":\"int\",\"v\":\"9223372036854775807\"}", true },
		{ "\"maximum\":18446744073709551616.0",
		  "{\"$\":\"int\",\"v\":\"18446744073709551616\"}", true },
		{ "\"maximum\":18446744073709551616.0",
		  "{\"$\":\"int\",\"v\":\"18446744073709551617\"}", false },
		{ "\"maximum\":0.1", "{\"$\":\"decimal\",\"v\":\"0.1\"}", true },
		{ "\"minimum\":0.1", "{\"$\":\"decimal\",\"v\":\"0.1\"}", true },
		{ "\"maximum\":10", "{\"$\":\"decimal\",\"v\":\"10.00000000000000000001\"}",
		  false },
		{ "\"maximum\":10", "{\"$\":\"decimal\",\"v\":\"0100e-1\"}", true },
		{ "\"maximum\":10", "{\"$\":\"decimal\",\"v\":\"1e99999999999999999999\"}", false },
		{ "\"minimum\":10", "{\"$\":\"decimal\",\"v\":\"1e-99999999999999999999\"}",
		  false },
		{ "\"minimum\":0", "{\"$\":\"decimal\",\"v\":\"-0.000\"}", true },
		{ "\"minimum\":0", "{\"$\":\"decimal\",\"v\":\"1-2\"}", false },
		{ "\"minimum\":0", "{\"$\":\"float\",\"v\":\"inf\"}", true },
		{ "\"minimum\":0", "{\"$\":\"float\",\"v\":\"-inf\"}", false },
		{ "\"maximum\":5", "{\"$\":\"duration\",\"v\":6.5}", false },
		{ "\"maximum\":5", "{\"$\":\"vec\",\"t\":\"int\",\"v\":[1,6]}", false },
		{ "\"maximum\":5",
		  "{\"$\":\"array\",\"dtype\":\"int64\",\"shape\":[1],\"v\":\"AAA=\"}", false },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cleanup_free char *s = str_printf("{\"type\":\"object\",\"properties\":{\"n\":{"
						  "%s}}}",
						  cases[i].schema);
		cleanup_free char *v = str_printf("{\"n\":%s}", cases[i].value);
		cleanup_json json_t *schema = compile(s), *args = NULL;
		ASSERT_EQ(json_parse(v, strlen(v), 0, &args, NULL), 0);
		if ((schema_check(schema, "add", args, NULL) >= 0) != cases[i].is_good)
			test_fail(__FILE__, __LINE__, "%s with %s", cases[i].schema,
				  cases[i].value);
	}
}

/* A map in its tagged form is the same object. */
TEST(tagged_maps)
{
	const char *s = "{\"type\":\"object\",\"properties\":{\"o\":{\"type\":\"object\","
			"\"properties\":{\"n\":{\"maximum\":5},\"$\":{}},\"required\":[\"n\"],"
			"\"additionalProperties\":false}}}";
	check(s, "{\"o\":{\"$\":\"map\",\"v\":[[\"n\",5],[\"$\",1]]}}", NULL);
	check(s, "{\"o\":{\"$\":\"map\",\"v\":[[\"n\",6]]}}",
	      "Tool 'add': argument 'o.n' must be at most 5");
	check(s, "{\"o\":{\"$\":\"map\",\"v\":[]}}", "Tool 'add': argument 'o' lacks 'n'");
	check(s, "{\"o\":{\"$\":\"map\",\"v\":[[\"n\",1],[\"z\",1]]}}",
	      "Tool 'add': argument 'o' must not have 'z'");
	check(s, "{\"o\":{\"$\":\"map\",\"v\":[[\"n\",1],[\"n\",2]]}}",
	      "Tool 'add': argument 'o' has the key 'n' twice");
	check(s, "{\"o\":{\"$\":\"map\",\"v\":[[\"n\",1],[2,1]]}}",
	      "Tool 'add': argument 'o' must have names as keys");
	check("{\"o\":\"object\"}", "{\"o\":{\"$\":\"map\",\"v\":[[2,1]]}}", NULL);
}

TEST(alternatives)
{
	const char *s = "{\"type\":\"object\",\"properties\":{\"a\":{\"anyOf\":[{\"type\":"
			"\"string\"},{\"type\":\"null\"}]},\"b\":{\"oneOf\":[{\"type\":\"integer\"}"
			",{\"minimum\":5}]},\"c\":{\"allOf\":[{\"type\":\"string\"},{\"minLength\":"
			"2}]},\"d\":{\"anyOf\":[{\"type\":\"string\"}]}}}";
	check(s, "{\"a\":\"x\"}", NULL);
	check(s, "{\"a\":null}", NULL);
	check(s, "{\"a\":1}",
	      "Tool 'add': argument 'a' fits none of its alternatives, being integer");
	check(s, "{\"b\":1}", NULL);
	check(s, "{\"b\":5.5}", NULL);
	check(s, "{\"b\":6}", "Tool 'add': argument 'b' fits more than one of its alternatives");
	check(s, "{\"b\":1.5}",
	      "Tool 'add': argument 'b' fits none of its alternatives, being number");
	check(s, "{\"c\":\"xy\"}", NULL);
	check(s, "{\"c\":\"x\"}", "Tool 'add': argument 'c' must have at least 2 characters");
	check(s, "{\"c\":1}", "Tool 'add': argument 'c' must be string, got integer");
	check(s, "{\"d\":1}", "Tool 'add': argument 'd' must be string, got integer");
}

TEST(references)
{
	const char *s = "{\"type\":\"object\",\"properties\":{\"tree\":{\"$ref\":\"#/$defs/"
			"node\"},\"old\":{\"$ref\":\"#/definitions/"
			"n\",\"maximum\":9}},\"$defs\":{\"node\":{\"type\":\"object\","
			"\"properties\":{\"v\":{\"type\":\"integer\"},\"kids\":{\"type\":\"array\","
			"\"items\":{\"$ref\":\"#/$defs/"
			"node\"}}},\"required\":[\"v\"],\"additionalProperties\":false}},"
			"\"definitions\":{\"n\":{\"type\":\"integer\",\"minimum\":1}}}";
	check(s, "{\"tree\":{\"v\":1,\"kids\":[{\"v\":2},{\"v\":3,\"kids\":[]}]}}", NULL);
	check(s, "{\"tree\":{\"v\":1,\"kids\":[{\"v\":\"x\"}]}}",
	      "Tool 'add': argument 'tree.kids[0].v' must be integer, got string");
	check(s, "{\"tree\":{\"v\":1,\"kids\":[{}]}}",
	      "Tool 'add': argument 'tree.kids[0]' lacks 'v'");
	check(s, "{\"tree\":{\"v\":1,\"evil\":1}}",
	      "Tool 'add': argument 'tree' must not have 'evil'");
	check(s, "{\"old\":5}", NULL);
	check(s, "{\"old\":0}", "Tool 'add': argument 'old' must be at least 1");
	check(s, "{\"old\":10}", "Tool 'add': argument 'old' must be at most 9");
}

TEST(patterns)
{
	const char *s = "{\"a\":{\"type\":\"string\",\"pattern\":\"^\\\\d{4}-[a-f]+$\","
			"\"required\":false},\"b\":{\"pattern\":\"x\",\"required\":false}}";
	check(s, "{\"a\":\"2024-abc\"}", NULL);
	check(s, "{\"a\":\"2024-abcg\"}",
	      "Tool 'add': argument 'a' must match the pattern ^\\d{4}-[a-f]+$");
	check(s, "{\"b\":\"axb\"}", NULL);
	check(s, "{\"b\":5}", NULL);
	check(s, "{\"b\":\"y\"}", "Tool 'add': argument 'b' must match the pattern x");
}

/* Two alternatives at every level: 2^n ways to fail, and a guest that has them all tried. */
TEST(what_is_too_dear_is_refused)
{
	const char *s =
		"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/n\"}},\"$defs\":{"
		"\"n\":{\"anyOf\":[{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/n\"}},"
		"{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/n\"},\"maxItems\":1}]}}}";
	char args[200], open[51] = "", close[51] = "";
	memset(open, '[', 50);
	memset(close, ']', 50);
	snprintf(args, sizeof(args), "{\"a\":%s5%s}", open, close);
	cleanup_json json_t *schema = compile(s);
	cleanup_free char *why = schema_refusal(schema, "add", args, strlen(args));
	ASSERT(why && strstr(why, "is too complex to be checked"));

	const char *p = "{\"a\":{\"pattern\":\"(0+0+)+y\"}}";
	cleanup_json json_t *dear = compile(p);
	const int len = 8 << 20;
	cleanup_free char *text = str_printf("{\"a\":\"%0*d\"}", len, 0);
	ASSERT(text);
	cleanup_free char *said = schema_refusal(dear, "add", text, strlen(text));
	ASSERT(said && strstr(said, "is too complex to be checked"));
	cleanup_free char *shorter = str_printf("{\"a\":\"%05000d\"}", 0);
	cleanup_free char *no = schema_refusal(dear, "add", shorter, strlen(shorter));
	ASSERT(no && strstr(no, "must match the pattern"));
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
		{ "{\"a\":{\"type\":\"string\",\"pattern\":5}}", "pattern: it must be a string" },
		{ "{\"a\":{\"pattern\":\"(a\"}}", "pattern: a ( has no matching )" },
		{ "{\"a\":{\"pattern\":\"(?=a)b\"}}", "pattern: groups that look around" },
		{ "{\"a\":{\"pattern\":\"(a)\\\\1\"}}",
		  "pattern: back references are not supported" },
		{ "{\"a\":{\"pattern\":\"((a{100}){100}){100}\"}}", "pattern: it is too large" },
		{ "{\"a\":{\"anyOf\":[]}}", "must be lists of schemas" },
		{ "{\"a\":{\"anyOf\":[{\"not\":{}}]}}", "unsupported schema keyword" },
		{ "{\"a\":{\"$ref\":\"#/x\"}}", "$ref must be" },
		{ "{\"a\":{\"$ref\":\"http://example.org/s.json\"}}", "$ref must be" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/"
		  "x\"}},\"$defs\":{\"y\":{}}}",
		  "$ref must be" },
		{ "{\"type\":\"object\",\"$defs\":{\"x\":{\"$ref\":\"#/$defs/x\"}}}",
		  "refers to itself without end" },
		{ "{\"type\":\"object\",\"$defs\":{\"x\":{\"anyOf\":[{\"$ref\":\"#/$defs/"
		  "y\"}]},\"y\":{\"allOf\":[{\"$ref\":\"#/$defs/x\"}]}}}",
		  "refers to itself without end" },
		{ "{\"type\":\"object\",\"$defs\":{\"x\":{\"patternProperties\":{}}}}",
		  "unsupported schema keyword" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"$defs\":{}}}}", "at the top" },
		{ "{\"type\":\"object\",\"anyOf\":[{}]}", "'anyOf' is not supported at the top" },
		{ "{\"type\":\"object\",\"enum\":[{}]}", "'enum' is not supported at the top" },
		{ "{\"a\":{\"multipleOf\":2}}", "unsupported schema keyword" },
		{ "{\"a\":{\"if\":{}}}", "unsupported schema keyword" },
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
	cleanup_json json_t *full =
		compile("{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/"
			"x\"},\"b\":{\"anyOf\":["
			"{\"type\":\"string\"},{\"$ref\":\"#/$defs/x\"}],\"description\":\"B.\"},"
			"\"c\":{\"anyOf\":[{},{\"type\":\"string\"}]}},\"$defs\":{\"x\":{\"type\":"
			"\"integer\"}}}");
	cleanup_json json_t *told = schema_summary(full);
	cleanup_free char *said = json_text(told, NULL);
	ASSERT_STREQ(said, "{\"a\":{\"type\":\"integer\",\"required\":false},"
			   "\"b\":{\"type\":[\"string\",\"integer\"],\"required\":false,"
			   "\"description\":\"B.\"},"
			   "\"c\":{\"type\":null,\"required\":false}}");
}
