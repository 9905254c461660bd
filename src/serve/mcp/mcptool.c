/* serve/mcp/mcptool.c - see mcptool.h. The list of tools, the check of arguments, and the form of
 * results. */
#include "serve/mcp/mcptool.h"

#include <cordon/cordon.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* "a b c" as an array; NULL: out of memory. */
static json_t *words(const char *text)
{
	json_t *a = json_array();

	while (*text) {
		size_t len = strcspn(text, " ");
		json_array_append_new(a, json_stringn(text, len));
		text += len + strspn(text + len, " ");
	}
	return a;
}

static bool is_listed(enum mcptool_list list, bool lists_all)
{
	return list == MCPTOOL_BOTH || list == (lists_all ? MCPTOOL_FULL : MCPTOOL_SHORT);
}

static json_t *property(const struct mcptool_arg *a)
{
	json_t *p = json_object();

	json_object_set_new(p, "type", json_string(a->is_integer ? "integer" : "string"));
	if (a->is_integer)
		json_object_set_new(p, "minimum", json_integer(0));
	json_object_set_new(p, "description", json_string(a->about));
	if (a->choices)
		json_object_set_new(p, "enum", words(a->choices));
	if (a->example)
		json_object_set_new(p, "examples", json_pack("[s]", a->example));
	return p;
}

static json_t *input_schema(const struct mcptool *t, bool lists_all)
{
	json_t *schema = json_object(), *properties = json_object(), *required = json_array();

	for (const struct mcptool_arg *a = t->args; a < t->args + MCPTOOL_ARGS && a->name; a++) {
		if (!is_listed(a->list, lists_all))
			continue;
		json_object_set_new(properties, a->name, property(a));
		if (a->is_required)
			json_array_append_new(required, json_string(a->name));
	}
	json_object_set_new(schema, "type", json_string("object"));
	json_object_set_new(schema, "properties", properties);
	json_object_set_new(schema, "required", required);
	json_object_set_new(schema, "additionalProperties", json_false());
	return schema;
}

json_t *mcptool_list(const struct mcptool *table, bool lists_all)
{
	json_t *list = json_array();

	for (const struct mcptool *tool = table; tool->name; tool++) {
		if (!is_listed(tool->list, lists_all))
			continue;
		json_t *t = json_object(), *hints = json_object(), *out = json_object();
		json_object_set_new(t, "name", json_string(tool->name));
		json_object_set_new(t, "description", json_string(tool->description));
		json_object_set_new(t, "inputSchema", input_schema(tool, lists_all));
		json_object_set_new(out, "type", json_string("object"));
		json_object_set_new(t, "outputSchema", out);
		json_object_set_new(hints, "readOnlyHint", json_boolean(tool->is_read_only));
		json_object_set_new(hints, "destructiveHint", json_boolean(tool->is_destructive));
		json_object_set_new(hints, "openWorldHint", json_false());
		json_object_set_new(t, "annotations", hints);
		json_array_append_new(list, t);
	}
	return list;
}

/* What a model would not expect of the sandbox: it comes after the result. */
static void add_notice(struct mcpcall *c, const char *text)
{
	json_t *part = json_object();

	json_object_set_new(part, "type", json_string("text"));
	json_object_set_new(part, "text", json_string(text));
	json_array_append_new(c->content, part);
}

static void add_notices(struct mcpcall *c)
{
	if (c->is_replaced) {
		add_notice(c,
			   "State lost: this is a new sandbox. The earlier one was destroyed, or "
			   "was unused for longest when room was needed; its variables and "
			   "files are gone.");
		json_object_set_new(c->structured, "is_new_sandbox", json_true());
	}
	if (c->is_apart)
		add_notice(c, "This machine has no user namespaces, so each language has a sandbox "
			      "with files of its own. The file tools use that of the shell.");
}

static json_t *to_result(struct mcpcall *c)
{
	json_t *result = json_object(), *part = json_object();
	cleanup_free char *json = c->text ? NULL : json_text(c->structured, NULL);
	const char *text = c->text ? c->text : json ? json : "";

	if (!text[0]) /* models refuse an empty text */
		text = "(no text)";
	json_object_set_new(part, "type", json_string("text"));
	json_object_set_new(part, "text", json_string_lossy(text, strlen(text)));
	json_array_insert_new(c->content, 0, part);
	add_notices(c);
	json_object_set(result, "content", c->content);
	json_object_set(result, "structuredContent", c->structured);
	json_object_set_new(result, "isError", json_boolean(c->is_error));
	return result;
}

static void fail(struct mcpcall *c, const struct cordon_error *e)
{
	free(c->text);
	c->text = err_text(e);
	c->is_error = true;
	json_object_set_new(c->structured, "error", json_string(c->text ? c->text : "failed"));
}

static json_t *refuse(int code, const char *message)
{
	json_t *e = json_object();

	json_object_set_new(e, "code", json_integer(code));
	json_object_set_new(e, "message", json_string(message));
	return e;
}

static const struct mcptool *find_tool(const struct mcptool *t, const char *name)
{
	while (t->name && !str_eq(t->name, name))
		t++;
	return t->name ? t : NULL;
}

static int check_arg(const struct mcptool_arg *a, const json_t *value, struct cordon_error **reterr)
{
	if (json_is_null(value)) /* models send null for a missing argument */
		return 0;
	if (a->is_integer)
		return json_is_integer(value) && json_integer_value(value) >= 0
			       ? 0
			       : err_set(reterr, CORDON_INVALID,
					 "the argument '%s' must be a non-negative integer",
					 a->name);
	if (!json_is_string(value))
		return err_set(reterr, CORDON_INVALID, "the argument '%s' must be a string",
			       a->name);
	/* Only file contents may contain a NUL. Elsewhere, less would run than was sent. */
	if (!str_eq(a->name, "contents") &&
	    strlen(json_string_value(value)) != json_string_length(value))
		return err_set(reterr, CORDON_INVALID, "the argument '%s' contains a NUL character",
			       a->name);
	return 0;
}

static const struct mcptool_arg *find_arg(const struct mcptool *t, const char *key)
{
	for (const struct mcptool_arg *a = t->args; a < t->args + MCPTOOL_ARGS && a->name; a++)
		if (str_eq(key, a->name) || (a->also[0] && str_eq(key, a->also[0])) ||
		    (a->also[1] && str_eq(key, a->also[1])))
			return a;
	return NULL;
}

static int refuse_arg(const struct mcptool *t, const char *key, struct cordon_error **reterr)
{
	const char *names[MCPTOOL_ARGS];
	size_t count = 0;

	for (; count < MCPTOOL_ARGS && t->args[count].name; count++)
		names[count] = t->args[count].name;
	const char *nearest = str_nearest(key, names, count);
	return err_set(reterr, CORDON_INVALID, "unknown argument '%.64s'%s%s%s", key,
		       nearest ? "; did you mean '" : "", nearest ? nearest : "",
		       nearest ? "'?" : "");
}

/* Checks against inputSchema, and gives each argument its own name. The tools themselves report
 * missing arguments. *ret is a new reference. */
static int take_args(const struct mcptool *t, const json_t *args, json_t **ret,
		     struct cordon_error **reterr)
{
	cleanup_json json_t *own = json_object();
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)args, key, value)
	{
		const struct mcptool_arg *a = find_arg(t, key);
		if (!a)
			return refuse_arg(t, key, reterr);
		int r = check_arg(a, value, reterr);
		if (r == 0 && json_object_get(own, a->name))
			r = err_set(reterr, CORDON_INVALID, "the argument '%s' is given twice",
				    a->name);
		if (r == 0 && json_object_set(own, a->name, value) < 0)
			r = err_set(reterr, CORDON_NOMEM, "out of memory");
		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(own);
	return 0;
}

/* The tools of tests take their arguments as they come. */
static int run_tool(const struct mcptool *t, struct mcpcall *c, struct cordon_error **reterr)
{
	cleanup_json json_t *own = NULL;

	if (c->mcp->options.tools == mcptool_table) {
		int r = take_args(t, c->args, &own, reterr);
		if (r < 0)
			return r;
		c->args = own;
	}
	int r = t->fn(c, reterr);
	c->args = NULL;
	return r;
}

json_t *mcptool_call(struct mcp *m, const json_t *message, const struct mcp_sink *sink,
		     struct span *span, json_t **ret_error)
{
	cleanup_error struct cordon_error *e = NULL;
	const json_t *params = json_object_get(message, "params");
	const json_t *args = json_object_get(params, "arguments");
	const char *name = json_string_value(json_object_get(params, "name"));
	const struct mcptool *tool = find_tool(m->options.tools, name);
	json_t *result = NULL;
	struct mcpcall c;

	if (!name || (args && !json_is_object(args))) {
		*ret_error = refuse(-32602, "tools/call needs a name, and arguments are an object");
		return NULL;
	}
	if (!tool) {
		*ret_error = refuse(-32602, "there is no such tool");
		return NULL;
	}
	if (mcpcall_begin(&c, m, message, sink, &e) < 0) {
		*ret_error = refuse(cordon_code_rpc(CORDON_LIMIT), cordon_error_message(e));
		return NULL;
	}
	c.span = span;
	span->object = tool->name;
	span_set_text(span, "gen_ai.tool.name", tool->name);
	if (run_tool(tool, &c, &e) < 0)
		fail(&c, e);
	if (c.refusal)
		*ret_error = json_incref(c.refusal);
	else if (!mcpcall_is_cancelled(&c))
		result = to_result(&c);
	mcpcall_end(&c);
	return result;
}
