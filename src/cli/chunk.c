/* cli/chunk.c - reads the code chunks of R Markdown and Quarto documents, and writes the document
 * as Markdown with what they printed.
 *
 *     ```{r label, eval=FALSE}        options of knitr
 *     #| eval: false                  options of Quarto, at the top of the chunk
 *     1 + 1
 *     ``` */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "cli/notebook.h"

enum { ENGINE_BYTES = 32 };

static const char *const engines[][2] = {
	{ "r", "r" },   { "R", "r" },       { "python", "python" },   { "bash", "sh" },
	{ "sh", "sh" }, { "node", "node" }, { "javascript", "node" },
};

static const char *guest_of(const char *engine)
{
	for (size_t i = 0; i < sizeof(engines) / sizeof(*engines); i++)
		if (str_eq(engines[i][0], engine))
			return engines[i][1];
	return NULL;
}

/* One line of the document, without its newline. */
struct line {
	const char *at;
	size_t len;
	size_t number;
};

static bool next_line(const struct buf *text, size_t *offset, struct line *l)
{
	if (*offset >= text->len)
		return false;
	l->at = text->data + *offset;
	const char *nl = memchr(l->at, '\n', text->len - *offset);
	l->len = nl ? (size_t)(nl - l->at) : text->len - *offset;
	*offset += l->len + (nl != NULL);
	l->len -= l->len > 0 && l->at[l->len - 1] == '\r';
	l->number++;
	return true;
}

/* ---- fences */

struct fence {
	char mark;    /* ` or ~; 0: none */
	size_t count; /* of the marks */
	struct line info;
};

static struct fence fence_of(const struct line *l)
{
	struct fence f = { 0 };
	size_t at = 0;

	while (at < l->len && (l->at[at] == ' ' || l->at[at] == '\t'))
		at++;
	char mark = at < l->len ? l->at[at] : 0;
	while (at < l->len && l->at[at] == mark) {
		at++;
		f.count++;
	}
	if ((mark != '`' && mark != '~') || f.count < 3)
		return (struct fence){ 0 };
	while (at < l->len && l->at[at] == ' ')
		at++;
	f.mark = mark;
	f.info = (struct line){ .at = l->at + at, .len = l->len - at, .number = l->number };
	while (f.info.len > 0 && strchr(" \t", f.info.at[f.info.len - 1]))
		f.info.len--;
	return f;
}

/* The engine of {engine …}; false: an ordinary block of text. */
static bool engine_of(const struct fence *f, char ret[static ENGINE_BYTES])
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	const struct line *i = &f->info;

	if (i->len < 3 || i->at[0] != '{' || i->at[i->len - 1] != '}')
		return false;
	size_t n = strspn(i->at + 1, letters);
	if (n == 0 || n >= ENGINE_BYTES || !strchr(" ,}", i->at[1 + n]))
		return false;
	memcpy(ret, i->at + 1, n);
	ret[n] = '\0';
	return true;
}

/* ---- options */

static int take_flag(struct cell *cell, const char *name, const char *value,
		     struct cordon_error **reterr)
{
	bool is_true = !strcasecmp(value, "true") || str_eq(value, "T");
	bool is_false = !strcasecmp(value, "false") || str_eq(value, "F");
	bool is_known = str_eq(name, "eval") || str_eq(name, "error") || str_eq(name, "include") ||
			str_eq(name, "echo");

	if (!is_known)
		return 0; /* about how a page looks, or a label */
	if (!is_true && !is_false && str_eq(name, "eval"))
		return err_set(reterr, CORDON_INVALID,
			       "line %zu: eval is '%s', and only TRUE and FALSE are understood",
			       cell->place, value);
	if (str_eq(name, "eval"))
		cell->is_run = is_true;
	else if (str_eq(name, "error"))
		cell->may_fail = is_true;
	else if (str_eq(name, "include"))
		cell->is_hidden = is_false;
	else
		cell->is_echoed = !is_false;
	return 0;
}

/* "name=value" or "name: value". */
static int take_option(struct cell *cell, const char *at, size_t len, char sign,
		       struct cordon_error **reterr)
{
	cleanup_free char *text = str_ndup(at, len);
	char *value = text ? strchr(text, sign) : NULL, *name = text;

	if (!value)
		return text ? 0 : err_errno(reterr, ENOMEM, "read the document");
	*value++ = '\0';
	value += strspn(value, " \t");
	name += strspn(name, " \t");
	name[strcspn(name, " \t")] = '\0';
	value[strcspn(value, " \t\r")] = '\0';
	return take_flag(cell, name, value, reterr);
}

/* {r label, eval=FALSE, fig.cap="a, b"} */
static int take_header(struct cell *cell, const struct fence *f, struct cordon_error **reterr)
{
	const char *at = f->info.at + 1, *end = f->info.at + f->info.len - 1, *from = at;
	char quote = 0;
	int r = 0;

	for (; at <= end && r == 0; at++) {
		if (at < end && quote)
			quote = *at == quote ? 0 : quote;
		else if (at < end && (*at == '"' || *at == '\''))
			quote = *at;
		else if (at == end || *at == ',') {
			r = take_option(cell, from, (size_t)(at - from), '=', reterr);
			from = at + 1;
		}
	}
	return r;
}

static int take_comment(struct cell *cell, const struct line *l, struct cordon_error **reterr)
{
	size_t skip = l->len >= 2 && !memcmp(l->at, "#|", 2)    ? 2
		      : l->len >= 3 && !memcmp(l->at, "//|", 3) ? 3
								: 0;

	return skip ? take_option(cell, l->at + skip, l->len - skip, ':', reterr) : 0;
}

/* ---- the document */

/* The lines up to the fence that closes this one. cell NULL: text. */
static int take_block(struct notebook *n, size_t *offset, struct line *l, const struct fence *open,
		      struct cell *cell, struct cordon_error **reterr)
{
	size_t start = *offset, first = l->number;
	int r = 0;

	for (size_t at = start; r == 0 && next_line(&n->text, offset, l); at = *offset) {
		struct fence f = fence_of(l);

		if (f.mark == open->mark && f.count >= open->count && f.info.len == 0) {
			if (cell) {
				cell->code = str_ndup(n->text.data + start, at - start);
				cell->to = *offset;
			}
			return cell && !cell->code ? err_errno(reterr, ENOMEM, "read the document")
						   : 0;
		}
		if (cell)
			r = take_comment(cell, l, reterr);
	}
	if (r < 0 || !cell)
		return r; /* Markdown ends an open block of text at the end of the document */
	return err_set(reterr, CORDON_INVALID, "the chunk at line %zu is not closed", first);
}

static int take_chunk(struct notebook *n, size_t *offset, size_t from, struct line *l,
		      const struct fence *f, const char *engine, struct cordon_error **reterr)
{
	struct cell *cell = notebook_add(n);
	const char *guest = guest_of(engine);

	if (!cell)
		return err_set(reterr, CORDON_LIMIT, "there are too many chunks");
	cell->place = l->number;
	cell->from = from;
	(void)str_copy(cell->engine, sizeof(cell->engine), engine);
	int r = take_header(cell, f, reterr);
	if (r == 0)
		r = take_block(n, offset, l, f, cell, reterr);
	if (r < 0)
		return r;
	cell->is_run = cell->is_run && cell->code[strspn(cell->code, " \t\r\n")];
	if (!cell->is_run)
		return 0;
	if (!guest)
		return err_set(reterr, CORDON_INVALID,
			       "line %zu: the engine '%s' is not supported: there are r, python, "
			       "node, bash and sh; eval=FALSE leaves the chunk out",
			       cell->place, engine);
	cell->guest = guest;
	n->guest = n->guest ? n->guest : guest;
	size_t i = 0;
	while (i < NOTEBOOK_LANGUAGES && n->languages[i] && !str_eq(n->languages[i], guest))
		i++;
	if (i < NOTEBOOK_LANGUAGES)
		n->languages[i] = guest;
	return 0;
}

int chunk_parse(struct notebook *n, struct cordon_error **reterr)
{
	struct line l = { 0 };
	size_t offset = 0;
	int r = 0;

	if (n->text.len > 0 &&
	    (!str_is_utf8(n->text.data, n->text.len) || memchr(n->text.data, '\0', n->text.len)))
		return err_set(reterr, CORDON_INVALID, "the document is not valid UTF-8");
	for (size_t from = 0; r == 0 && next_line(&n->text, &offset, &l); from = offset) {
		struct fence f = fence_of(&l);
		char engine[ENGINE_BYTES];

		if (f.mark && engine_of(&f, engine))
			r = take_chunk(n, &offset, from, &l, &f, engine, reterr);
		else if (f.mark)
			r = take_block(n, &offset, &l, &f, NULL, reterr);
	}
	if (r == 0 && !n->guest)
		n->guest = "r"; /* there is nothing to run */
	return r;
}

/* ---- writing */

/* Longer than any run of backticks inside. */
static void put_fenced(struct buf *b, const char *name, const char *text)
{
	size_t most = 2, run = 0;

	for (const char *p = text; *p; p++) {
		run = *p == '`' ? run + 1 : 0;
		most = run > most ? run : most;
	}
	for (size_t i = 0; i <= most; i++)
		(void)buf_add_char(b, '`');
	(void)buf_printf(b, "%s\n%s%s", name, text, str_ends(text, "\n") ? "" : "\n");
	for (size_t i = 0; i <= most; i++)
		(void)buf_add_char(b, '`');
	(void)buf_add_str(b, "\n\n");
}

static void put_lines(struct buf *b, const json_t *lines, const char *end)
{
	cleanup_buf struct buf text = { 0 };
	json_t *line;
	size_t i;

	buf_init(&text, SIZE_MAX / 2);
	json_array_foreach(lines, i, line)
	{
		(void)buf_printf(&text, "%s%s", json_string_value(line), end);
	}
	if (text.len > 0)
		put_fenced(b, "", buf_text(&text));
}

static void put_output(struct buf *b, const json_t *o)
{
	const json_t *data = json_object_get(o, "data");
	const json_t *png = json_object_get(data, "image/png");

	if (json_is_string(png))
		(void)buf_printf(b, "![](data:image/png;base64,%s)\n\n", json_string_value(png));
	put_lines(b, json_object_get(data, "text/plain"), "");
	put_lines(b, json_object_get(o, "text"), "");
	put_lines(b, json_object_get(o, "traceback"), "\n");
}

/* The code without the #| lines that it begins with. */
static const char *after_options(const char *code)
{
	while (str_starts(code, "#|") || str_starts(code, "//|")) {
		const char *nl = strchr(code, '\n');
		code = nl ? nl + 1 : code + strlen(code);
	}
	return code;
}

static void put_chunk(struct buf *b, const struct cell *cell)
{
	json_t *o;
	size_t i;

	if (cell->is_hidden)
		return;
	if (cell->is_echoed)
		put_fenced(b, cell->engine, after_options(cell->code));
	json_array_foreach(cell->outputs, i, o) put_output(b, o);
}

int chunk_write(const struct notebook *n, struct buf *ret, struct cordon_error **reterr)
{
	size_t at = 0;

	for (size_t i = 0; i < n->count; i++) {
		(void)buf_add(ret, n->text.data + at, n->cells[i].from - at);
		put_chunk(ret, &n->cells[i]);
		at = n->cells[i].to;
	}
	if (n->text.len > at)
		(void)buf_add(ret, n->text.data + at, n->text.len - at);
	return ret->len > 0 || n->text.len == 0 ? 0 : err_errno(reterr, ENOMEM, "%s", n->path);
}
