/* inside/guests/sh/tool_command.c - tools as commands: their arguments, and how results are
 * printed. */
#include <stdlib.h>
#include <string.h>

#include "inside/guests/sh/tool_command.h"

struct json tool_command_find(struct json specs, const char *name)
{
	const char *at = NULL;
	struct json key, spec;
	while (json_each(specs, &at, &key, &spec))
		if (json_is(json_get(spec, "name"), name))
			return spec;
	return (struct json){ 0 };
}

bool tool_command_is_raw(struct json spec)
{
	return json_kind(json_get(spec, "command")) == 't';
}

static void add_string(struct bytes *b, struct json v)
{
	json_string(v, b);
}

/* ---- arguments */

/* The name of a declared type, of JSON Schema or of R; of a list, its first word. */
static struct json type_of(struct json declared)
{
	struct json t = json_kind(declared) == '{' ? json_get(declared, "type") : declared;
	const char *at = NULL;
	struct json key, first;
	if (json_kind(t) == '[' && json_each(t, &at, &key, &first))
		return first;
	return t;
}

static const char *word_of(struct json type)
{
	static const char *const words[][2] = {
		{ "number", "numeric" },   { "numeric", "numeric" },
		{ "double", "numeric" },   { "integer", "integer" },
		{ "boolean", "logical" },  { "logical", "logical" },
		{ "string", "character" }, { "character", "character" },
		{ "array", "list" },       { "list", "list" },
		{ "object", "list" },      { "data.frame", "data.frame" },
	};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (json_is(type, words[i][0]))
			return words[i][1];
	return NULL;
}

/* Whether a JSON value of this kind has the type that the word names; NULL: any type. */
static bool fits(const char *word, char kind, const char *text)
{
	static const struct {
		const char *word, *kinds;
	} table[] = { { "numeric", "0" },
		      { "integer", "0" },
		      { "logical", "tf" },
		      { "list", "{[" },
		      { "data.frame", "{[" } };
	if (!kind || !word)
		return kind != 0;
	if (!strcmp(word, "integer") && strpbrk(text, ".eE"))
		return false;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(word, table[i].word))
			return strchr(table[i].kinds, kind) != NULL;
	return false;
}

/* Converts an argument's text to a JSON value of its type; false: impossible. */
static bool put_value(struct json type, const char *text, struct bytes *ret)
{
	const char *word = word_of(type);
	size_t len = strlen(text);
	bool json = len && json_check(text, len) && text[0] != ' ';
	if (fits(word, json ? json_kind((struct json){ text, len }) : 0, text)) {
		bytes_add(ret, text, len);
		return true;
	}
	if (word && strcmp(word, "character") != 0)
		return false;
	json_quote(ret, text, len);
	return true;
}

static bool is_required(struct json declared)
{
	return json_kind(json_get(declared, "required")) != 'f';
}

struct argument {
	struct json name, declared;
	const char *text; /* NULL: not given */
};

#define ARGUMENTS_MAX 64

static size_t declared_args(struct json spec, struct argument *ret)
{
	const char *at = NULL;
	size_t n = 0;
	struct json args = json_get(spec, "args");
	while (n < ARGUMENTS_MAX && json_each(args, &at, &ret[n].name, &ret[n].declared))
		ret[n++].text = NULL;
	return n;
}

static bool complain(struct bytes *e, struct json spec, const char *fmt, const char *what)
{
	struct bytes name = { 0 };
	add_string(&name, json_get(spec, "name"));
	bytes_char(&name, 0);
	if (!strcmp(fmt, "unexpected"))
		bytes_format(e, "Unexpected arguments for tool '%s': '%s'", name.data, what);
	else
		bytes_format(e, "Tool '%s': argument '%s' %s", name.data, what, fmt);
	bytes_done(&name);
	return false;
}

/* --name value or --name=value at argv[*i]. */
static bool assign_named(struct json spec, struct argument *a, size_t n, char **argv, size_t argc,
			 size_t *i, struct bytes *e)
{
	char *eq = strchr(argv[*i], '='), *name = argv[*i] + 2;
	if (eq)
		*eq = 0;
	size_t k = 0;
	while (k < n && !json_is(a[k].name, name))
		k++;
	if (k == n)
		return complain(e, spec, "unexpected", name);
	if (!eq && *i + 1 == argc)
		return complain(e, spec, "has no value", name);
	a[k].text = eq ? eq + 1 : argv[++*i];
	return true;
}

/* Assigns arguments by name, the rest by position. */
static bool assign(struct json spec, struct argument *a, size_t n, char **argv, size_t argc,
		   struct bytes *e)
{
	size_t next = 0;
	bool options = true;
	for (size_t i = 0; i < argc; i++) {
		if (options && !strcmp(argv[i], "--")) {
			options = false;
		} else if (options && !strncmp(argv[i], "--", 2)) {
			if (!assign_named(spec, a, n, argv, argc, &i, e))
				return false;
		} else {
			while (next < n && a[next].text)
				next++;
			if (next == n)
				return complain(e, spec, "unexpected", argv[i]);
			a[next++].text = argv[i];
		}
	}
	return true;
}

static bool typed_args(struct json spec, char **argv, size_t argc, struct bytes *ret,
		       struct bytes *e)
{
	struct argument a[ARGUMENTS_MAX];
	size_t n = declared_args(spec, a);
	if (!assign(spec, a, n, argv, argc, e))
		return false;
	bytes_char(ret, '{');
	for (size_t i = 0, put = 0; i < n; i++) {
		struct bytes name = { 0 }, why = { 0 };
		add_string(&name, a[i].name);
		bytes_char(&name, 0);
		bool ok = a[i].text || !is_required(a[i].declared);
		if (!ok)
			complain(e, spec, "is missing", name.data);
		if (ok && a[i].text) {
			bytes_text(ret, put++ ? "," : "");
			bytes_add(ret, a[i].name.at, a[i].name.len);
			bytes_char(ret, ':');
			ok = put_value(type_of(a[i].declared), a[i].text, ret);
			bytes_format(&why, "must be %s, got character",
				     word_of(type_of(a[i].declared)) ?: "");
			bytes_char(&why, 0);
			if (!ok)
				complain(e, spec, why.data, name.data);
		}
		bytes_done(&name);
		bytes_done(&why);
		if (!ok)
			return false;
	}
	bytes_char(ret, '}');
	return true;
}

void tool_command_base64(struct bytes *b, const char *data, size_t len)
{
	static const char set[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = (const unsigned char *)data;
	for (size_t i = 0; i < len; i += 3) {
		unsigned v = (unsigned)p[i] << 16 | (i + 1 < len ? (unsigned)p[i + 1] << 8 : 0) |
			     (i + 2 < len ? p[i + 2] : 0);
		char out[4] = { set[v >> 18], set[v >> 12 & 63],
				i + 1 < len ? set[v >> 6 & 63] : '=',
				i + 2 < len ? set[v & 63] : '=' };
		bytes_add(b, out, 4);
	}
}

static void from_base64(struct json v, struct bytes *ret)
{
	unsigned acc = 0, bits = 0;
	for (size_t i = 0; i < v.len; i++) {
		char c = v.at[i];
		unsigned d = c >= 'A' && c <= 'Z'   ? (unsigned)(c - 'A')
			     : c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 26
			     : c >= '0' && c <= '9' ? (unsigned)(c - '0') + 52
			     : c == '+'             ? 62
			     : c == '/'             ? 63
						    : 64;
		if (d == 64)
			continue;
		acc = acc << 6 | d;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			bytes_char(ret, (char)(acc >> bits));
		}
	}
}

/* Whether bytes are best sent as a string: NUL is not possible there, and other control characters
 * take six bytes each. */
static bool is_text(struct json v)
{
	size_t controls = 0;
	for (size_t i = 0; i < v.len; i++) {
		unsigned char c = (unsigned char)v.at[i];
		if (!c)
			return false;
		controls += c < 0x20 && c != '\n' && c != '\t' && c != '\r';
	}
	return controls <= v.len / 16 && json_is_utf8(v.at, v.len);
}

bool tool_command_args(struct json spec, char **argv, size_t argc, struct json input,
		       struct bytes *ret, struct bytes *reterr)
{
	if (!tool_command_is_raw(spec))
		return typed_args(spec, argv, argc, ret, reterr);
	bytes_text(ret, "{\"args\":[");
	for (size_t i = 0; i < argc; i++) {
		bytes_text(ret, i ? "," : "");
		json_quote(ret, argv[i], strlen(argv[i]));
	}
	bytes_text(ret, "],\"stdin\":");
	if (is_text(input)) {
		json_quote(ret, input.at, input.len);
	} else {
		bytes_text(ret, "{\"$\":\"bytes\",\"v\":\"");
		tool_command_base64(ret, input.at, input.len);
		bytes_text(ret, "\"}");
	}
	bytes_char(ret, '}');
	return true;
}

/* ---- results */

/* A string's text, the bytes of the bytes form, or JSON. */
static void show(struct json v, struct bytes *ret)
{
	if (json_kind(v) == '"')
		add_string(ret, v);
	else if (json_kind(v) == '{' && json_is(json_get(v, "$"), "bytes"))
		from_base64(json_get(v, "v"), ret);
	else if (json_kind(v) && json_kind(v) != 'n')
		bytes_add(ret, v.at, v.len);
}

int tool_command_show(struct json spec, struct json value, struct bytes *ret_out,
		      struct bytes *ret_err)
{
	struct json out = json_get(value, "stdout"), code = json_get(value, "exit_code");
	if (!code.len)
		code = json_get(value, "exitCode");
	if (tool_command_is_raw(spec) && (out.len || code.len)) {
		show(out, ret_out);
		show(json_get(value, "stderr"), ret_err);
		return (int)(json_number(code, json_kind(code) == '0' ? 1 : 0) & 255);
	}
	show(value, ret_out);
	if (!tool_command_is_raw(spec) && json_kind(value) && json_kind(value) != 'n')
		bytes_char(ret_out, '\n');
	return 0;
}

/* ---- help */

void tool_command_help(struct json spec, struct bytes *ret)
{
	struct argument a[ARGUMENTS_MAX];
	size_t n = tool_command_is_raw(spec) ? 0 : declared_args(spec, a);
	add_string(ret, json_get(spec, "description"));
	bytes_text(ret, "\n\nUsage: ");
	bool is_told = json_kind(json_get(spec, "usage")) == '"';
	if (is_told) {
		add_string(ret, json_get(spec, "usage"));
	} else {
		add_string(ret, json_get(spec, "name"));
		if (tool_command_is_raw(spec))
			bytes_text(ret, " [ARGUMENT]... [< INPUT]");
	}
	for (size_t i = 0; !is_told && i < n; i++) {
		bool required = is_required(a[i].declared);
		bytes_text(ret, required ? " " : " [");
		add_string(ret, a[i].name);
		bytes_text(ret, required ? "" : "]");
	}
	bytes_char(ret, '\n');
	for (size_t i = 0; i < n; i++) {
		bytes_text(ret, "  --");
		add_string(ret, a[i].name);
		bytes_format(ret, "  %s", word_of(type_of(a[i].declared)) ?: "any");
		if (json_kind(json_get(a[i].declared, "description")) == '"') {
			bytes_text(ret, "  ");
			add_string(ret, json_get(a[i].declared, "description"));
		}
		bytes_char(ret, '\n');
	}
	const char *at = NULL;
	struct json key, example;
	while (json_each(json_get(spec, "examples"), &at, &key, &example)) {
		bytes_text(ret, "Example: ");
		add_string(ret, example);
		bytes_char(ret, '\n');
	}
}

static const char extensions_help[] =
	"Usage: extensions list [--category CATEGORY] [--json]\n"
	"       extensions info NAME\n"
	"Lists the commands that the host provides, or describes one.\n";

static void list_one(struct json spec, bool json, bool first, struct bytes *ret)
{
	struct json category = json_get(spec, "category");
	if (!json) {
		struct bytes name = { 0 };
		add_string(&name, json_get(spec, "name"));
		bytes_char(&name, 0);
		bytes_format(ret, "%-20s ", name.data);
		bytes_done(&name);
		add_string(ret, json_get(spec, "description"));
		bytes_char(ret, '\n');
		return;
	}
	bytes_format(ret, "%s{\"name\":", first ? "" : ",");
	struct json name = json_get(spec, "name"), text = json_get(spec, "description");
	bytes_add(ret, name.at, name.len);
	bytes_text(ret, ",\"description\":");
	bytes_add(ret, text.len ? text.at : "null", text.len ? text.len : 4);
	bytes_text(ret, ",\"category\":");
	bytes_add(ret, category.len ? category.at : "null", category.len ? category.len : 4);
	bytes_char(ret, '}');
}

static int list(struct json specs, char **argv, size_t argc, struct bytes *ret, struct bytes *e)
{
	const char *category = NULL, *at = NULL;
	bool json = false, first = true;
	for (size_t i = 0; i < argc; i++) {
		if (!strcmp(argv[i], "--json")) {
			json = true;
		} else if (!strcmp(argv[i], "--category") && i + 1 < argc) {
			category = argv[++i];
		} else {
			bytes_format(e, "extensions: unknown option: %s\n%s", argv[i],
				     extensions_help);
			return 1;
		}
	}
	struct json key, spec;
	bytes_text(ret, json ? "[" : "");
	while (json_each(specs, &at, &key, &spec)) {
		if (category && !json_is(json_get(spec, "category"), category))
			continue;
		list_one(spec, json, first, ret);
		first = false;
	}
	bytes_text(ret, json ? "]\n" : "");
	return 0;
}

int tool_command_extensions(struct json specs, char **argv, size_t argc, struct bytes *ret_out,
			    struct bytes *ret_err)
{
	if (argc && !strcmp(argv[0], "list"))
		return list(specs, argv + 1, argc - 1, ret_out, ret_err);
	if (argc == 2 && !strcmp(argv[0], "info")) {
		struct json spec = tool_command_find(specs, argv[1]);
		if (!spec.len) {
			bytes_format(ret_err, "extensions: unknown extension: %s\n", argv[1]);
			return 1;
		}
		bytes_format(ret_out, "%s: ", argv[1]);
		tool_command_help(spec, ret_out);
		if (json_kind(json_get(spec, "category")) == '"') {
			bytes_text(ret_out, "Category: ");
			add_string(ret_out, json_get(spec, "category"));
			bytes_char(ret_out, '\n');
		}
		return 0;
	}
	if (!argc || !strcmp(argv[0], "--help")) {
		bytes_text(ret_out, extensions_help);
		return 0;
	}
	bytes_text(ret_err, extensions_help);
	return 1;
}
