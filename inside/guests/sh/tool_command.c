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

static bool declares(struct json spec, const char *argument)
{
	return json_get(json_get(spec, "args"), argument).len != 0;
}

bool tool_command_wants_context(struct json spec)
{
	return tool_command_is_raw(spec) && (declares(spec, "cwd") || declares(spec, "env"));
}

/* Our own variables are of no use to a tool; exported functions are no variables. A name that is
 * there twice, or is no text, would make an object that the host refuses. */
static bool is_told(const char *first, const char *pair, size_t name_len)
{
	for (const char *at = first; at < pair; at += strlen(at) + 1)
		if (!strncmp(at, pair, name_len + 1))
			return false;
	return name_len && strncmp(pair, "CORDON_", 7) != 0 &&
	       strncmp(pair, "BASH_FUNC_", 10) != 0 && json_is_utf8(pair, name_len);
}

static void add_context(struct json spec, struct json context, struct bytes *ret)
{
	const char *end = context.at + context.len, *at = context.at;
	if (!context.len)
		return;
	if (declares(spec, "cwd")) {
		bytes_text(ret, ",\"cwd\":");
		json_quote(ret, at, strlen(at));
	}
	if (!declares(spec, "env"))
		return;
	bytes_text(ret, ",\"env\":{");
	bool is_first = true;
	const char *first = at + strlen(at) + 1;
	for (at = first; at < end; at += strlen(at) + 1) {
		size_t len = strcspn(at, "=");
		if (!at[len] || !is_told(first, at, len))
			continue;
		bytes_text(ret, is_first ? "" : ",");
		json_quote(ret, at, len);
		bytes_char(ret, ':');
		json_quote(ret, at + len + 1, strlen(at + len + 1));
		is_first = false;
	}
	bytes_char(ret, '}');
}

bool tool_command_args(struct json spec, const struct tool_command_call *call, struct bytes *ret,
		       struct bytes *reterr)
{
	struct json input = call->input;
	if (!tool_command_is_raw(spec))
		return typed_args(spec, call->argv, call->argc, ret, reterr);
	bytes_text(ret, "{\"args\":[");
	for (size_t i = 0; i < call->argc; i++) {
		bytes_text(ret, i ? "," : "");
		json_quote(ret, call->argv[i], strlen(call->argv[i]));
	}
	bytes_text(ret, "],\"stdin\":");
	if (is_text(input)) {
		json_quote(ret, input.at, input.len);
	} else {
		bytes_text(ret, "{\"$\":\"bytes\",\"v\":\"");
		tool_command_base64(ret, input.at, input.len);
		bytes_text(ret, "\"}");
	}
	add_context(spec, call->context, ret);
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

static void add_arguments(struct json spec, struct bytes *ret)
{
	struct argument a[ARGUMENTS_MAX];
	size_t n = declared_args(spec, a);
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
}

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
	if (n)
		add_arguments(spec, ret);
	const char *at = NULL;
	struct json key, example;
	while (json_each(json_get(spec, "examples"), &at, &key, &example)) {
		bytes_text(ret, "Example: ");
		add_string(ret, example);
		bytes_char(ret, '\n');
	}
}

static const char extensions_help[] =
	"Usage: extensions SUBCOMMAND [OPTION]...\n"
	"\n"
	"Subcommands:\n"
	"  list [--category CATEGORY] [--json]   the commands that the host provides\n"
	"  info NAME                             what one of them does\n";

/* Width in characters. */
static size_t width_of(struct json text)
{
	struct bytes b = { 0 };
	size_t n = 0;
	add_string(&b, text);
	for (size_t i = 0; i < b.len; i++)
		n += ((unsigned char)b.data[i] & 0xc0) != 0x80;
	bytes_done(&b);
	return n;
}

static void add_column(struct bytes *ret, struct json text, size_t width)
{
	add_string(ret, text);
	for (size_t n = width_of(text); n < width + 2; n++)
		bytes_char(ret, ' ');
}

/* The text of a field as JSON. */
static void add_field(struct bytes *ret, const char *name, struct json text)
{
	bytes_format(ret, "\"%s\":", name);
	bytes_add(ret, text.len ? text.at : "\"\"", text.len ? text.len : 2);
}

static void list_json(struct json specs, const char *category, struct bytes *ret)
{
	const char *at = NULL;
	struct json key, spec;
	bool first = true;
	bytes_char(ret, '[');
	while (json_each(specs, &at, &key, &spec)) {
		if (category && !json_is(json_get(spec, "category"), category))
			continue;
		bytes_text(ret, first ? "{" : ",{");
		add_field(ret, "name", json_get(spec, "name"));
		bytes_char(ret, ',');
		add_field(ret, "category", json_get(spec, "category"));
		bytes_char(ret, ',');
		add_field(ret, "description", json_get(spec, "description"));
		bytes_char(ret, '}');
		first = false;
	}
	bytes_text(ret, "]\n");
}

static void list_head(struct bytes *ret, size_t name, size_t category)
{
	bytes_format(ret, "%-*s  %-*s  DESCRIPTION\n", (int)name, "NAME", (int)category,
		     "CATEGORY");
	for (size_t n = name + category + 4 + strlen("DESCRIPTION"); n; n--)
		bytes_text(ret, "\xe2\x94\x80");
	bytes_char(ret, '\n');
}

static void list_text(struct json specs, const char *category, struct bytes *ret)
{
	const char *at = NULL;
	struct json key, spec;
	size_t count = 0, names = strlen("NAME"), categories = strlen("CATEGORY");
	while (json_each(specs, &at, &key, &spec)) {
		size_t n = width_of(json_get(spec, "name"));
		size_t c = width_of(json_get(spec, "category"));
		if (category && !json_is(json_get(spec, "category"), category))
			continue;
		names = n > names ? n : names;
		categories = c > categories ? c : categories;
		count++;
	}
	if (!count) {
		bytes_text(ret, "(no extensions registered)\n");
		return;
	}
	list_head(ret, names, categories);
	at = NULL;
	while (json_each(specs, &at, &key, &spec)) {
		if (category && !json_is(json_get(spec, "category"), category))
			continue;
		add_column(ret, json_get(spec, "name"), names);
		add_column(ret, json_get(spec, "category"), categories);
		add_string(ret, json_get(spec, "description"));
		bytes_char(ret, '\n');
	}
}

static int list(struct json specs, char **argv, size_t argc, struct bytes *ret, struct bytes *e)
{
	const char *category = NULL;
	bool json = false;
	for (size_t i = 0; i < argc; i++) {
		if (!strcmp(argv[i], "--json")) {
			json = true;
		} else if (!strcmp(argv[i], "--category") && i + 1 < argc) {
			category = argv[++i];
		} else if (!strncmp(argv[i], "--category=", strlen("--category="))) {
			category = argv[i] + strlen("--category=");
		} else {
			bytes_format(e, "extensions: unknown option: %s\n%s", argv[i],
				     extensions_help);
			return 1;
		}
	}
	if (json)
		list_json(specs, category, ret);
	else
		list_text(specs, category, ret);
	return 0;
}

/* A row of what is known of one command; nothing if it is unknown. */
static void info_row(struct bytes *ret, const char *title, struct json text)
{
	if (!json_kind(text) || json_kind(text) == 'n')
		return;
	bytes_format(ret, "%-12s ", title);
	add_string(ret, text);
	bytes_char(ret, '\n');
}

static void info(struct json spec, struct bytes *ret)
{
	const char *at = NULL;
	struct json key, example, category = json_get(spec, "category"), none = { "\"\"", 2 };
	size_t count = 0;
	info_row(ret, "Name:", json_get(spec, "name"));
	info_row(ret, "Category:", json_kind(category) == '"' ? category : none);
	info_row(ret, "Description:", json_get(spec, "description"));
	info_row(ret, "Usage:", json_get(spec, "usage"));
	if (!tool_command_is_raw(spec))
		add_arguments(spec, ret);
	while (json_each(json_get(spec, "examples"), &at, &key, &example)) {
		bytes_text(ret, count++ ? "  " : "Examples:\n  ");
		add_string(ret, example);
		bytes_char(ret, '\n');
	}
}

int tool_command_extensions(struct json specs, char **argv, size_t argc, struct bytes *ret_out,
			    struct bytes *ret_err)
{
	const char *verb = argc ? argv[0] : "--help";
	if (!strcmp(verb, "--help") || !strcmp(verb, "-h")) {
		bytes_text(ret_out, extensions_help);
		return 0;
	}
	if (!strcmp(verb, "list"))
		return list(specs, argv + 1, argc - 1, ret_out, ret_err);
	if (strcmp(verb, "info") != 0) {
		bytes_format(ret_err, "extensions: unknown subcommand: %s\n%s", verb,
			     extensions_help);
		return 1;
	}
	struct json spec = { 0 };
	if (argc < 2)
		bytes_text(ret_err, "extensions info: missing extension name\n");
	else if (!(spec = tool_command_find(specs, argv[1])).len)
		bytes_format(ret_err, "extensions: unknown extension: %s\n", argv[1]);
	else
		info(spec, ret_out);
	return spec.len ? 0 : 1;
}
