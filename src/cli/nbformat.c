/* cli/nbformat.c - reads and writes .ipynb, the format of Jupyter's notebooks, version 4. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/notebook.h"

enum { VERSION = 4, RESULT_MAX = 64 << 20 };

/* ---- reading */

/* Languages as kernels name them. */
static const char *const kernels[][2] = {
	{ "python", "python" },
	{ "python3", "python" },
	{ "ipython", "python" },
	{ "R", "r" },
	{ "r", "r" },
	{ "ir", "r" },
	{ "javascript", "node" },
	{ "nodejs", "node" },
	{ "node", "node" },
	{ "bash", "sh" },
	{ "sh", "sh" },
};

static int choose_guest(struct notebook *n, const char *guest, struct cordon_error **reterr)
{
	const json_t *meta = json_object_get(n->root, "metadata");
	const json_t *kernel = json_object_get(meta, "kernelspec");
	const char *said[] = {
		json_string_value(json_object_get(kernel, "language")),
		json_string_value(json_object_get(json_object_get(meta, "language_info"), "name")),
		json_string_value(json_object_get(kernel, "name")),
	};
	const char *name = said[0] ? said[0] : said[1] ? said[1] : said[2];

	n->guest = guest ? guest : name ? NULL : "python";
	for (size_t i = 0; !n->guest && i < sizeof(kernels) / sizeof(*kernels); i++)
		if (str_eq(kernels[i][0], name))
			n->guest = kernels[i][1];
	if (n->guest)
		return 0;
	return err_set(reterr, CORDON_INVALID,
		       "the notebook's language is '%s', which is not supported: there are python, "
		       "r, node and sh; --guest names one",
		       name);
}

/* A text, or a list of lines that have their newlines. NULL: neither. */
static char *source_of(const json_t *source)
{
	cleanup_buf struct buf b = { 0 };
	json_t *line;
	size_t i;

	buf_init(&b, SIZE_MAX / 2);
	if (json_is_string(source))
		return str_dup(json_string_value(source));
	if (!json_is_array(source))
		return NULL;
	json_array_foreach(source, i, line)
	{
		if (!json_is_string(line) || buf_add_str(&b, json_string_value(line)) < 0)
			return NULL;
	}
	return b.len ? buf_take(&b) : str_dup("");
}

static bool has_tag(const json_t *cell, const char *tag)
{
	const json_t *tags = json_object_get(json_object_get(cell, "metadata"), "tags");
	json_t *one;
	size_t i;

	json_array_foreach(tags, i, one)
	{
		if (str_eq(json_string_value(one), tag))
			return true;
	}
	return false;
}

static int add_cell(struct notebook *n, size_t place, json_t *node, struct cordon_error **reterr)
{
	const char *type = json_string_value(json_object_get(node, "cell_type"));

	if (!type)
		return err_set(reterr, CORDON_INVALID, "cell %zu has no cell_type", place);
	if (!str_eq(type, "code"))
		return 0;
	struct cell *cell = notebook_add(n);
	if (!cell)
		return err_set(reterr, CORDON_LIMIT, "there are too many cells");
	*cell = (struct cell){ .place = place,
			       .guest = n->guest,
			       .node = node,
			       .may_fail = has_tag(node, "raises-exception") };
	cell->code = source_of(json_object_get(node, "source"));
	if (!cell->code)
		return err_set(reterr, CORDON_INVALID,
			       "cell %zu: its source is neither a text nor a list of lines", place);
	cell->is_run = cell->code[strspn(cell->code, " \t\r\n")] != '\0';
	return 0;
}

int nbformat_parse(struct notebook *n, const char *guest, struct cordon_error **reterr)
{
	int r = json_parse(buf_text(&n->text), n->text.len, 0, &n->root, reterr);

	if (r < 0)
		return err_wrap(reterr, -CORDON_INVALID, "it is not a notebook, which is JSON");
	json_t *cells = json_object_get(n->root, "cells"), *cell;
	const json_t *version = json_object_get(n->root, "nbformat");
	if (!json_is_integer(version))
		return err_set(reterr, CORDON_INVALID, "it is not a notebook: it has no nbformat");
	if (json_integer_value(version) != VERSION)
		return err_set(reterr, CORDON_INVALID,
			       "its nbformat is %lld, and only %d is supported: `jupyter nbconvert "
			       "--to notebook` converts it",
			       (long long)json_integer_value(version), VERSION);
	if (!json_is_array(cells))
		return err_set(reterr, CORDON_INVALID, "it is not a notebook: it has no cells");
	r = choose_guest(n, guest, reterr);
	size_t i;
	json_array_foreach(cells, i, cell)
	{
		if (r == 0)
			r = add_cell(n, i + 1, cell, reterr);
	}
	return r;
}

/* ---- outputs */

/* Texts are lists of lines, each with its newline; those of a traceback have none. */
static json_t *split(const char *text, size_t len, bool has_newlines)
{
	json_t *list = json_array();

	while (len > 0) {
		const char *nl = memchr(text, '\n', len);
		size_t n = nl ? (size_t)(nl + 1 - text) : len;

		json_array_append_new(list, json_string_lossy(text, n - (nl && !has_newlines)));
		text += n;
		len -= n;
	}
	return list;
}

static json_t *lines_of(const char *text, size_t len)
{
	return split(text, len, true);
}

static const char *stream_name(int stream)
{
	return stream == 1 ? "stdout" : "stderr";
}

/* While the cell runs, a stream's text is one string. */
void nbformat_add_stream(json_t *outputs, int stream, const char *bytes, size_t len)
{
	size_t count = json_array_size(outputs);
	json_t *last = count > 0 ? json_array_get(outputs, count - 1) : NULL;

	if (str_eq(json_string_value(json_object_get(last, "name")), stream_name(stream))) {
		json_array_append_new(json_object_get(last, "parts"),
				      json_string_lossy(bytes, len));
		return;
	}
	json_array_append_new(outputs, json_pack("{s:s, s:s, s:[o]}", "output_type", "stream",
						 "name", stream_name(stream), "parts",
						 json_string_lossy(bytes, len)));
}

static void join_streams(json_t *outputs)
{
	json_t *o, *part;
	size_t i, k;

	json_array_foreach(outputs, i, o)
	{
		cleanup_buf struct buf b = { 0 };

		buf_init(&b, SIZE_MAX / 2);
		json_array_foreach(json_object_get(o, "parts"), k, part)(void)
			buf_add_str(&b, json_string_value(part));
		json_object_del(o, "parts");
		json_object_set_new(o, "text", lines_of(buf_text(&b), b.len));
	}
}

/* One rich output into a bundle of types. Binary data is base64 without a newline, as it comes. */
static void put_rich(json_t *bundle, const json_t *o)
{
	const char *mime = json_string_value(json_object_get(o, "mime"));
	const json_t *data = json_object_get(o, "data");
	const char *text = json_string_value(data);
	json_t *parsed = NULL;

	if (!mime || !text)
		return;
	if (str_eq(json_string_value(json_object_get(o, "encoding")), "base64"))
		json_object_set(bundle, mime, json_object_get(o, "data"));
	else if (str_eq(mime, "application/json") &&
		 json_parse(text, strlen(text), 0, &parsed, NULL) == 0)
		json_object_set_new(bundle, mime, parsed);
	else
		json_object_set_new(bundle, mime, lines_of(text, json_string_length(data)));
}

static void add_display(json_t *outputs, const json_t *o)
{
	json_t *bundle = json_object();

	put_rich(bundle, o);
	json_array_append_new(outputs, json_pack("{s:s, s:o, s:{}}", "output_type", "display_data",
						 "data", bundle, "metadata"));
}

static void add_error(json_t *outputs, const json_t *result)
{
	const json_t *e = json_object_get(result, "exception");
	const char *name = json_string_value(json_object_get(e, "name"));
	const char *value = json_string_value(json_object_get(e, "message"));
	const char *trace = json_string_value(json_object_get(e, "traceback"));
	const char *kind = json_string_value(json_object_get(result, "error_kind"));
	const char *error = json_string_value(json_object_get(result, "error"));

	if (!trace || !trace[0])
		trace = error ? error : "";
	if (str_eq(kind, "timeout") && error) /* the exception is how the code was stopped */
		value = error;
	json_array_append_new(outputs,
			      json_pack("{s:s, s:s, s:s, s:o}", "output_type", "error", "ename",
					name   ? name
					: kind ? kind
					       : "Error",
					"evalue",
					value   ? value
					: error ? error
						: "",
					"traceback", split(trace, strlen(trace), false)));
}

/* Rich forms of the value belong to the value's own output. R has no others without a name. */
static bool is_of_value(const json_t *o, const char *guest)
{
	return json_is_true(json_object_get(o, "value")) ||
	       (str_eq(guest, "r") && json_is_null(json_object_get(o, "name")));
}

json_t *nbformat_outputs(json_t *streams, struct cordon_result *r, const char *guest, size_t number)
{
	cleanup_json json_t *result = NULL, *bundle = json_object();
	json_t *o;
	size_t i;

	join_streams(streams);
	if (!r)
		return streams;
	const char *text = cordon_result_value_text(r), *whole = cordon_result_json(r);
	if (whole)
		(void)json_parse(whole, strlen(whole), RESULT_MAX, &result, NULL);
	json_array_foreach(json_object_get(result, "outputs"), i, o)
	{
		if (text && is_of_value(o, guest))
			put_rich(bundle, o);
		else
			add_display(streams, o);
	}
	if (json_object_get(bundle, "text/html")) /* JupyterLab would prefer it to the table */
		json_object_del(bundle, "application/json");
	if (cordon_result_success(r) && text) {
		json_object_set_new(bundle, "text/plain", lines_of(text, strlen(text)));
		json_array_append_new(streams,
				      json_pack("{s:s, s:I, s:O, s:{}}", "output_type",
						"execute_result", "execution_count",
						(json_int_t)number, "data", bundle, "metadata"));
	} else if (!cordon_result_success(r)) {
		add_error(streams, result);
	}
	return streams;
}

/* ---- writing */

int nbformat_write(const struct notebook *n, struct buf *ret, struct cordon_error **reterr)
{
	for (size_t i = 0; i < n->count; i++) {
		const struct cell *c = &n->cells[i];

		/* A cell that has not run has no outputs: those of another run would lie. */
		json_object_set_new(c->node, "outputs",
				    c->outputs ? json_incref(c->outputs) : json_array());
		json_object_set_new(c->node, "execution_count",
				    c->number ? json_integer((json_int_t)c->number) : json_null());
	}
	char *text = json_dumps(n->root, JSON_INDENT(1) | JSON_SORT_KEYS);
	int r = text ? buf_add_str(ret, text) : err_errno(reterr, ENOMEM, "%s", n->path);
	free(text);
	return r < 0 ? r : buf_add_char(ret, '\n');
}
