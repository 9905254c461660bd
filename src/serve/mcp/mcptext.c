/* serve/mcp/mcptext.c - see mcptext.h. */
#include "serve/mcp/mcptext.h"

#include <cordon/files.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/str.h"

enum {
	TEXT_MAX = 4 << 20,  /* of all together */
	LINE_SEARCH = 512,   /* a cut moves this far to be between two lines */
	IMAGE_MAX = 5 << 20, /* base64; models take no larger ones */
	KEPT_MAX = 16,       /* results whose long parts are kept in files */
	ROWS_SHOWN = 40,
	CELL_MAX = 80,
	VALUE_CUT = 60000,
};

#define KEPT_DIR "/tmp/cordon-output"

/* One result on its way to the model. */
struct writer {
	struct mcpcall *c;
	const json_t *full;
	unsigned number; /* of the files that keep its long parts; 0: none yet */
	struct buf text;
};

/* The end of the first part: between two lines if one ends nearby, otherwise between characters. */
static size_t end_of_head(const char *text, size_t at)
{
	size_t back = at > LINE_SEARCH ? LINE_SEARCH : at;
	const char *nl = memrchr(text + at - back, '\n', back);

	if (nl)
		return (size_t)(nl - text) + 1;
	while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80)
		at--;
	return at;
}

static size_t start_of_tail(const char *text, size_t len, size_t at)
{
	size_t ahead = len - at > LINE_SEARCH ? LINE_SEARCH : len - at;
	const char *nl = memchr(text + at, '\n', ahead);

	if (nl && (size_t)(nl - text) + 1 < len)
		return (size_t)(nl - text) + 1;
	while (at < len && ((unsigned char)text[at] & 0xc0) == 0x80)
		at++;
	return at;
}

char *mcptext_cut(const char *text, size_t len, size_t max, const char *note)
{
	if (len <= max)
		return str_ndup(text, len);
	size_t head = end_of_head(text, max / 2), tail = start_of_tail(text, len, len - max / 2);
	struct buf b;

	buf_init(&b, max + strlen(note) + 256);
	(void)buf_add(&b, text, head);
	(void)buf_printf(&b, "%s[... %zu of %zu bytes are left out here; %s ...]\n",
			 head > 0 && text[head - 1] == '\n' ? "" : "\n", tail - head, len, note);
	(void)buf_add(&b, text + tail, len - tail);
	char *cut = buf_take(&b);
	buf_done(&b);
	return cut;
}

/* The number of the directory for the long parts of this result. Old ones go, so that they do not
 * fill the workspace. */
static unsigned number_of(struct writer *w)
{
	struct client_sessions *sessions = &w->c->mcp->sessions;
	char old[64];

	if (w->number)
		return w->number;
	pthread_mutex_lock(&sessions->lock);
	w->number = ++w->c->cs->outputs;
	pthread_mutex_unlock(&sessions->lock);
	if (w->number > KEPT_MAX) {
		snprintf(old, sizeof(old), KEPT_DIR "/%u", w->number - KEPT_MAX);
		(void)cordon_file_remove(w->c->cs->session, old, true, NULL);
	}
	return w->number;
}

/* Keeps bytes in the workspace. Writes where they are, or why not. */
static bool keep(struct writer *w, const char *name, const void *bytes, size_t len, char *ret_path,
		 size_t size, char **ret_why)
{
	cleanup_error struct cordon_error *e = NULL;

	snprintf(ret_path, size, KEPT_DIR "/%u/%s", number_of(w), name);
	if (cordon_file_write(w->c->cs->session, ret_path, bytes, len, &e) == 0)
		return true;
	*ret_why = err_text(e);
	return false;
}

/* Adds a text to the data, cut if it is long, and returns the text as it was added; to be freed.
 * part: how much of it there is. */
static char *add_part(struct writer *w, const char *key, const char *bytes, size_t len,
		      const char *part)
{
	bool is_whole = w->c->mcp->options.lists_all || len <= MCPTEXT_MAX;
	cleanup_free char *why = NULL, *note = NULL;
	char name[32], path[96], *text;

	if (is_whole) {
		text = str_ndup(bytes, len);
	} else {
		snprintf(name, sizeof(name), "%s.txt", key);
		if (keep(w, name, bytes, len, path, sizeof(path), &why)) {
			bool is_default = w->c->cs->is_default && w->c->cs->has_contexts;
			note = str_printf("%s %s is in the file %s%s%s", part, key, path,
					  is_default ? "" : " of the sandbox ",
					  is_default ? "" : w->c->cs->id);
			snprintf(name, sizeof(name), "%s_file", key);
			json_object_set_new(w->c->structured, name, json_string(path));
		} else {
			note = str_printf("the whole could not be kept in a file: %.200s",
					  why ? why : "out of memory");
		}
		text = mcptext_cut(bytes, len, MCPTEXT_MAX, note ? note : "");
	}
	json_object_set_new(w->c->structured, key,
			    is_whole
				    ? json_string_lossy(bytes, len)
				    : json_string_lossy(text ? text : "", text ? strlen(text) : 0));
	return text;
}

/* Begins a new paragraph. */
static void begin_line(struct writer *w)
{
	if (w->text.len && w->text.data[w->text.len - 1] != '\n')
		(void)buf_add_char(&w->text, '\n');
}

/* A guest gives up to 64 KiB of a value's text, and then says so. */
static const char *part_of(const char *value)
{
	return strlen(value) >= VALUE_CUT && str_ends(value, "...") ? "the beginning of the"
								    : "the whole";
}

static void add_streams(struct writer *w, struct cordon_result *result)
{
	static const char *const keys[] = { "stdout", "stderr" };
	const char *value = cordon_result_value_text(result);
	size_t len[2] = { 0, 0 };
	const char *bytes[2] = { cordon_result_stdout(result, &len[0]),
				 cordon_result_stderr(result, &len[1]) };

	for (int i = 0; i < 2; i++) {
		cleanup_free char *text =
			add_part(w, keys[i], bytes[i] ? bytes[i] : "", len[i],
				 cordon_result_truncated(result, i + 1) ? "what the policy keeps of"
									: "the whole");
		if (i == 1 && len[1]) {
			begin_line(w);
			(void)buf_add_str(&w->text, "stderr:\n");
		}
		(void)buf_add_str(&w->text, text ? text : "");
		if (cordon_result_truncated(result, i + 1)) {
			begin_line(w);
			(void)buf_printf(
				&w->text,
				"[the policy keeps no more of %s (%s_bytes, output_lines); "
				"the rest is lost]\n",
				keys[i], keys[i]);
		}
		if (i > 0)
			continue;
		cleanup_free char *shown =
			value ? add_part(w, "result", value, strlen(value), part_of(value)) : NULL;
		if (!value)
			json_object_set_new(w->c->structured, "result", json_null());
		if (shown)
			begin_line(w);
		(void)buf_add_str(&w->text, shown ? shown : "");
	}
}

static void add_cell(struct buf *b, const json_t *cell)
{
	cleanup_free char *text =
		json_is_string(cell) ? str_dup(json_string_value(cell)) : json_text(cell, NULL);
	size_t len = text ? strlen(text) : 0,
	       n = len > CELL_MAX ? end_of_head(text, CELL_MAX) : len;

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ')
			text[i] = ' ';
	(void)buf_printf(b, "%.*s%s", (int)n, text ? text : "", n < len ? "..." : "");
}

static void add_row(struct buf *b, const json_t *name, const json_t *cells)
{
	size_t i;
	json_t *cell;

	if (name)
		add_cell(b, name);
	json_array_foreach(cells, i, cell)
	{
		(void)buf_add_str(b, " | ");
		add_cell(b, cell);
	}
	(void)buf_add_char(b, '\n');
}

/* A table {columns, index, data} as lines; nothing, if it is none. */
static void add_table(struct buf *b, const json_t *table)
{
	const json_t *columns = json_object_get(table, "columns");
	const json_t *index = json_object_get(table, "index"),
		     *data = json_object_get(table, "data");
	size_t rows = json_array_size(data), i;
	json_t *row;

	if (!json_is_array(columns) || !json_is_array(data))
		return;
	add_row(b, NULL, columns);
	json_array_foreach(data, i, row)
	{
		bool is_hidden =
			rows > ROWS_SHOWN && i >= ROWS_SHOWN / 2 && i < rows - ROWS_SHOWN / 2;
		if (is_hidden && i == ROWS_SHOWN / 2)
			(void)buf_printf(b, "[... %zu rows are left out here ...]\n",
					 rows - ROWS_SHOWN);
		if (!is_hidden)
			add_row(b, json_array_get(index, i), row);
	}
}

/* Whether models can be shown images of this type. */
static bool is_image(const char *mime)
{
	return str_eq(mime, "image/png") || str_eq(mime, "image/jpeg") ||
	       str_eq(mime, "image/gif") || str_eq(mime, "image/webp");
}

void mcptext_add_image(struct mcpcall *c, const char *mime, const char *base64)
{
	json_t *part = json_object();

	json_object_set_new(part, "type", json_string("image"));
	json_object_set_new(part, "data", json_string(base64));
	json_object_set_new(part, "mimeType", json_string(mime));
	json_array_append_new(c->content, part);
}

/* An output that a model cannot be shown: it is kept, and the text says where. */
static void add_kept(struct writer *w, size_t i, const char *mime, const char *data, bool is_base64)
{
	const char *slash = strchr(mime, '/');
	cleanup_free void *decoded = NULL;
	cleanup_free char *why = NULL;
	char name[48], path[96], ending[12];
	size_t len = strlen(data), n = 0;

	if (is_base64 && base64_decode(data, strlen(data), &decoded, &len, NULL) < 0)
		return;
	for (const char *s = slash ? slash + 1 : "";
	     *s >= 'a' && *s <= 'z' && n < sizeof(ending) - 1;)
		ending[n++] = *s++;
	ending[n] = '\0';
	snprintf(name, sizeof(name), "output-%zu.%s", i + 1, n ? ending : "bin");
	begin_line(w);
	if (keep(w, name, decoded ? decoded : data, len, path, sizeof(path), &why))
		(void)buf_printf(&w->text, "[an output of type %.60s is in the file %s]\n", mime,
				 path);
	else
		(void)buf_printf(&w->text, "[an output of type %.60s could not be kept: %.200s]\n",
				 mime, why ? why : "out of memory");
}

static bool is_table(const json_t *output, json_t **ret)
{
	const char *mime = json_string_value(json_object_get(output, "mime"));
	const char *data = json_string_value(json_object_get(output, "data"));

	return str_eq(mime, "application/json") && data &&
	       json_parse(data, strlen(data), 0, ret, NULL) == 0 &&
	       json_is_array(json_object_get(*ret, "columns"));
}

/* is_value: the table is the value, which was added as the language prints it. */
static void add_output(struct writer *w, size_t i, const json_t *o, const json_t *next,
		       bool is_value)
{
	const char *mime = json_string_value(json_object_get(o, "mime"));
	const char *data = json_string_value(json_object_get(o, "data"));
	bool is_base64 = str_eq(json_string_value(json_object_get(o, "encoding")), "base64");
	bool is_whole = w->c->mcp->options.lists_all;
	cleanup_json json_t *table = NULL, *other = NULL;

	if (!mime || !data)
		return;
	if (is_base64 &&
	    (is_whole ? str_starts(mime, "image/") : is_image(mime) && strlen(data) <= IMAGE_MAX))
		mcptext_add_image(w->c, mime, data);
	else if (is_table(o, &table)) {
		if (!is_value) {
			begin_line(w);
			add_table(&w->text, table);
		}
	} else if (str_eq(mime, "text/html") && is_table(next, &other))
		; /* the same table, for browsers */
	else if (!is_base64 && str_eq(mime, "text/plain") && strlen(data) <= MCPTEXT_MAX) {
		begin_line(w);
		(void)buf_add_str(&w->text, data);
	} else if (!is_whole)
		add_kept(w, i, mime, data, is_base64);
}

/* A value that is a table comes last, as HTML and as JSON. */
static void add_outputs(struct writer *w)
{
	const json_t *outputs = json_object_get(w->full, "outputs");
	const json_t *value = json_object_get(w->full, "result");
	bool has_frame = str_eq(json_string_value(json_object_get(value, "$")), "frame");
	size_t i, count = json_array_size(outputs);
	json_t *o;

	json_array_foreach(outputs, i, o)
		add_output(w, i, o, json_array_get(outputs, i + 1), has_frame && i + 1 == count);
}

static void add_error(struct writer *w, struct cordon_result *result)
{
	const char *kind = cordon_result_error_kind(result), *error = cordon_result_error(result);
	const char *trace = cordon_result_traceback(result);
	const json_t *exception = json_object_get(w->full, "exception");
	json_int_t line = json_integer_value(json_object_get(exception, "line"));
	bool is_whole = w->c->mcp->options.lists_all;
	size_t max = is_whole ? SIZE_MAX / 2 : MCPTEXT_MAX / 4;
	cleanup_free char *text = mcptext_cut(error ? error : "", error ? strlen(error) : 0, max,
					      "the message is long");
	cleanup_free char *cut = trace && trace[0] ? mcptext_cut(trace, strlen(trace), 2 * max,
								 "the traceback is long")
						   : NULL;
	char where[40] = "";

	json_object_set_new(w->c->structured, "error",
			    json_string_lossy(text ? text : "", text ? strlen(text) : 0));
	if (cut)
		json_object_set_new(w->c->structured, "traceback",
				    json_string_lossy(cut, strlen(cut)));
	if (line > 0) {
		json_object_set_new(w->c->structured, "line", json_integer(line));
		snprintf(where, sizeof(where), " in line %lld", (long long)line);
	}
	begin_line(w);
	(void)buf_printf(&w->text, "%s%s: %s\n", kind ? kind : "error", where, text ? text : "");
	(void)buf_add_str(&w->text, cut ? cut : "");
}

/* kind: of the error that ended it, if nothing else tells why. */
static void add_lost(struct writer *w, const char *kind, const char *why)
{
	if (kind && (!why || !str_eq(kind, "exception")))
		(void)buf_printf(&w->text,
				 "State lost: the interpreter was ended (%s) and started anew. Its "
				 "variables and processes are gone; files are kept.\n",
				 kind);
	else
		(void)buf_add_str(&w->text,
				  "State lost: the interpreter had ended and was started anew. Its "
				  "variables and processes are gone; files are kept.\n");
	if (why)
		(void)buf_printf(&w->text, "Reason: %s.\n", why);
	if (w->c->cs->has_contexts)
		(void)buf_add_str(&w->text, "Other languages keep their state, unless their next "
					    "result says otherwise.\n");
}

/* What is left of the interpreter after an end that the code did not choose. */
static void add_state(struct writer *w, struct cordon_result *result)
{
	const char *kind = cordon_result_error_kind(result);
	cleanup_free char *losses = cordon_result_losses_text(result);
	bool is_lost = json_is_true(json_object_get(w->full, "restarted"));
	json_t *why = json_object_get(w->full, "restart_reason");

	json_object_set_new(w->c->structured, "restarted", json_boolean(is_lost));
	if (why)
		json_object_set(w->c->structured, "restart_reason", why);
	if (is_lost || kind || (losses && losses[0]))
		begin_line(w);
	if (is_lost)
		add_lost(w, kind, json_string_value(why));
	else if (str_eq(kind, "timeout") || str_eq(kind, "cpu"))
		(void)buf_add_str(&w->text, "State kept: the code was interrupted; variables and "
					    "files are as it left them.\n");
	if (losses && losses[0])
		(void)buf_printf(&w->text, "%s\n", losses);
}

/* Logs each denial on a line of its own. */
static void log_denials(struct mcpcall *c, const char *denials)
{
	cleanup_free char *copy = str_dup(denials);
	char *at = copy;

	for (char *line; at && (line = strsep(&at, "\n"));)
		if (line[0])
			mcpcall_log(c, "warning", line);
}

void mcptext_describe(struct mcpcall *c, struct cordon_result *result, const json_t *full)
{
	static const char *const copied[] = { "success",   "error_kind", "denials",
					      "truncated", "tool_calls", "execution_time_ms" };
	struct writer w = { .c = c, .full = full };
	cleanup_free char *denials = cordon_result_denials_text(result);

	buf_init(&w.text, TEXT_MAX);
	for (size_t i = 0; i < sizeof(copied) / sizeof(*copied); i++)
		json_object_set(c->structured, copied[i], json_object_get(full, copied[i]));
	json_object_set_new(c->structured, "exit_code",
			    json_integer(cordon_result_exit_status(result)));
	json_object_set_new(c->structured, "sandbox_id", json_string(c->cs->id));
	json_object_set_new(c->structured, "error", json_null());
	add_streams(&w, result);
	add_outputs(&w);
	if (!cordon_result_success(result))
		add_error(&w, result);
	if (denials && denials[0]) {
		begin_line(&w);
		(void)buf_add_str(&w.text, denials);
		log_denials(c, denials);
	}
	add_state(&w, result);
	size_t images = json_array_size(c->content);
	c->text = w.text.len    ? buf_take(&w.text)
		  : images == 0 ? str_dup("(no output)")
				: str_printf("(%zu %s)", images, images == 1 ? "image" : "images");
	buf_done(&w.text);
}
