/* serve/e2b/e2b_result.c - see e2b_result.h. */
#include "serve/e2b/e2b_result.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "session/result.h"

#define CHART_MIME "application/vnd.cordon.chart+json"

static const struct {
	const char *mime, *key;
} forms[] = {
	{ "text/plain", "text" },        { "text/html", "html" },
	{ "text/markdown", "markdown" }, { "image/svg+xml", "svg" },
	{ "image/png", "png" },          { "image/jpeg", "jpeg" },
	{ "application/pdf", "pdf" },    { "text/latex", "latex" },
	{ "application/json", "json" },  { "application/javascript", "javascript" },
	{ CHART_MIME, "chart" },
};

static const char *key_of(const char *mime)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (str_eq(forms[i].mime, mime))
			return forms[i].key;
	return mime;
}

/* A table that was told as columns, index and rows becomes lists by column. NULL: it is none. */
static json_t *table(const json_t *j)
{
	const json_t *columns = json_object_get(j, "columns"), *rows = json_object_get(j, "data");
	const json_t *column, *row;
	size_t i, k;
	json_t *ret;

	if (!json_is_array(columns) || !json_is_array(rows) || !json_object_get(j, "index"))
		return NULL;
	ret = json_object();
	json_array_foreach((json_t *)(uintptr_t)columns, i, column)
	{
		cleanup_free char *text = json_is_string(column)
						  ? str_dup(json_string_value(column))
						  : json_text(column, NULL);
		json_t *list = json_array();

		json_array_foreach((json_t *)(uintptr_t)rows, k, row)
			json_array_append(list, json_array_get(row, i));
		json_object_set_new(ret, text ? text : "", list);
	}
	return ret;
}

/* Adds one form to a result. */
static void add_form(json_t *result, const json_t *output)
{
	const char *mime = json_string_value(json_object_get(output, "mime"));
	json_t *data = json_object_get(output, "data");
	const char *key = mime ? key_of(mime) : NULL;
	cleanup_json json_t *parsed = NULL;

	if (!key || !json_is_string(data))
		return;
	if (str_eq(key, "json") || str_eq(key, "chart")) {
		if (json_parse(json_string_value(data), json_string_length(data), 0, &parsed,
			       NULL) < 0)
			return;
		json_t *columns = str_eq(key, "json") ? table(parsed) : NULL;
		if (columns)
			json_object_set_new(result, "data", columns);
		else
			json_object_set(result, key, parsed);
	} else {
		json_object_set(result, key, data);
	}
}

static json_t *result_new_message(bool is_main)
{
	return json_pack("{s:s, s:b}", "type", "result", "is_main_result", is_main);
}

/* Whether the output is another form of what the last one showed: the same figure, or the table of
 * the same page. */
static bool belongs_to(const json_t *output, const json_t *last)
{
	const char *name = json_string_value(json_object_get(output, "name"));
	const char *last_name = json_string_value(json_object_get(last, "name"));

	if (!last || !json_equal(json_object_get(output, "value"), json_object_get(last, "value")))
		return json_is_true(json_object_get(output, "value")) &&
		       json_is_true(json_object_get(last, "value"));
	if (name || last_name)
		return str_eq(name, last_name);
	return str_eq(json_string_value(json_object_get(output, "mime")), "application/json") &&
	       str_eq(json_string_value(json_object_get(last, "mime")), "text/html");
}

/* A figure has a text too, as in a notebook. */
static void complete(json_t *result, const json_t *output)
{
	const json_t *name = json_object_get(output, "name");
	const json_t *chart = json_object_get(result, "chart");
	const char *title = json_string_value(json_object_get(chart, "title"));

	if (json_object_get(result, "text") ||
	    json_is_true(json_object_get(result, "is_main_result")))
		return;
	if (json_object_get(result, "png") || json_object_get(result, "svg")) {
		cleanup_free char *text = str_printf("<Figure %s>", title && *title ? title
								    : name ? json_string_value(name)
									   : "");
		if (text)
			json_object_set_new(result, "text", json_string(text));
	}
}

static void add_outputs(const struct cordon_result *r, json_t *main_result, json_t *ret)
{
	const json_t *output, *last = NULL;
	json_t *result = NULL;
	size_t i;

	json_array_foreach(r->outputs, i, output)
	{
		if (json_is_true(json_object_get(output, "value"))) {
			add_form(main_result, output);
			continue;
		}
		if (!result || !belongs_to(output, last)) {
			if (result)
				complete(result, last);
			result = result_new_message(false);
			json_array_append_new(ret, result);
		}
		add_form(result, output);
		last = output;
	}
	if (result)
		complete(result, last);
}

/* 'text' without its quotes, as the makers' server does. */
static json_t *value_text(const char *text)
{
	size_t len = strlen(text);

	if (len >= 2 && text[0] == '\'' && text[len - 1] == '\'')
		return json_string_lossy(text + 1, len - 2);
	return json_string_lossy(text, len);
}

static json_t *error_message(const struct e2b_context *c, const struct cordon_result *r)
{
	static const struct {
		const char *kind, *name;
	} names[] = {
		{ "timeout", "TimeoutError" },   { "cancelled", "KeyboardInterrupt" },
		{ "memory", "MemoryError" },     { "cpu", "CpuLimitError" },
		{ "processes", "ProcessError" }, { "disk", "DiskFullError" },
		{ "output", "OutputError" },     { "crashed", "KernelDiedError" },
		{ "syntax", "SyntaxError" },     { "denied", "PermissionError" },
	};
	const char *name = r->exception_name, *value = r->exception_message;
	char status[16];

	for (size_t i = 0; !name && i < sizeof(names) / sizeof(*names); i++)
		if (str_eq(r->kind, names[i].kind))
			name = names[i].name;
	snprintf(status, sizeof(status), "%d", r->exit_code);
	if (str_eq(c->guest, "sh") && !name) {
		name = "ExitStatus";
		value = status;
	}
	if (!value)
		value = r->error ? r->error : "";
	const char *traceback = r->traceback ? r->traceback : r->error ? r->error : "";
	json_t *j = json_object();
	json_object_set_new(j, "type", json_string("error"));
	json_object_set_new(j, "name", json_string(name ? name : "Error"));
	json_object_set_new(j, "value", json_string_lossy(value, strlen(value)));
	json_object_set_new(j, "traceback", json_string_lossy(traceback, strlen(traceback)));
	return j;
}

json_t *e2b_result_messages(const struct e2b_context *c, const struct cordon_result *r)
{
	json_t *ret = json_array(), *main_result = result_new_message(true);

	add_outputs(r, main_result, ret);
	if (r->text && r->success)
		json_object_set_new(main_result, "text", value_text(r->text));
	if (json_object_size(main_result) > 2)
		json_array_append(ret, main_result);
	json_decref(main_result);
	if (!r->success || (str_eq(c->guest, "sh") && r->exit_code != 0))
		json_array_append_new(ret, error_message(c, r));
	return ret;
}
