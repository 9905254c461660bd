/* serve/mcp/mcpspan.c - see mcpspan.h. */
#include "serve/mcp/mcpspan.h"

#include "base/str.h"

/* A text that stays valid. */
static const char *method_of(const json_t *message)
{
	static const char *const known[] = { "tools/call",      "tools/list",
					     "initialize",      "ping",
					     "server/discover", "resources/list",
					     "resources/read",  "resources/templates/list",
					     "logging/setLevel" };
	const char *method = json_string_value(json_object_get(message, "method"));

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (str_eq(method, known[i]))
			return known[i];
	return "_OTHER";
}

static const char *error_of(const json_t *error)
{
	static const struct {
		int code;
		const char *text;
	} table[] = {
		{ -32600, "-32600" }, { -32601, "-32601" }, { -32602, "-32602" },
		{ -32603, "-32603" }, { -32002, "-32002" }, { -32022, "-32022" },
	};
	json_int_t code = json_integer_value(json_object_get(error, "code"));

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].code == code)
			return table[i].text;
	return "_OTHER";
}

void mcpspan_begin(struct span *s, const struct mcp *m, const json_t *message,
		   const struct mcp_sink *sink)
{
	const json_t *meta = json_object_get(json_object_get(message, "params"), "_meta");
	const json_t *text = json_object_get(meta, "traceparent");
	struct trace_context parent = { 0 };
	bool is_given =
		json_is_string(text) &&
		trace_context_parse(json_string_value(text), json_string_length(text), &parent);
	const char *method = method_of(message);

	if (!is_given && sink)
		parent = sink->trace;
	span_begin(s, &(struct span_options){ .tracer = m->options.tracer,
					      .parent = &parent,
					      .link = is_given && sink ? &sink->trace : NULL,
					      .has_remote_parent = is_given,
					      .kind = SPAN_SERVER,
					      .name = method });
	span_set_text(s, "mcp.method.name", method);
}

void mcpspan_end(struct span *s, const json_t *result, const json_t *error)
{
	if (error)
		span_fail(s, error_of(error));
	else if (!result)
		span_fail(s, "cancelled");
	else if (json_is_true(json_object_get(result, "isError")))
		span_fail(s, "tool_error");
	span_end(s);
}
