/* cli/notebook.c - see notebook.h. */
#include "cli/notebook.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "cli/outcome.h"
#include "cli/unshown.h"

enum { FILE_MAX = 64 << 20, CELLS_MAX = 10000, KEPT_MAX = 64 << 20, REST_MAX = 32 << 20 };
/* Each change from one stream to the other makes an output, which costs more than its text. */
enum { STREAM_COST = 512 };

#define NOT_KEPT "\n(more output was not kept)\n"

static bool is_document(const char *path)
{
	return str_ends(path, ".Rmd") || str_ends(path, ".rmd") || str_ends(path, ".qmd");
}

bool notebook_is(const char *path)
{
	return path && (str_ends(path, ".ipynb") || is_document(path));
}

int notebook_load(const char *path, const char *guest, struct notebook *ret,
		  struct cordon_error **reterr)
{
	*ret = (struct notebook){ .path = path, .is_document = is_document(path) };
	buf_init(&ret->text, FILE_MAX);
	int r = file_load(path, FILE_MAX, &ret->text, reterr);
	if (r < 0)
		return r;
	r = ret->is_document ? chunk_parse(ret, reterr) : nbformat_parse(ret, guest, reterr);
	return r < 0 ? err_wrap(reterr, r, "%s", path) : 0;
}

void notebook_done(struct notebook *n)
{
	for (size_t i = 0; i < n->count; i++) {
		free(n->cells[i].code);
		json_decref(n->cells[i].outputs);
	}
	free(n->cells);
	json_decref(n->root);
	buf_done(&n->text);
	*n = (struct notebook){ 0 };
}

struct cell *notebook_add(struct notebook *n)
{
	struct cell *more =
		n->count < CELLS_MAX ? realloc(n->cells, (n->count + 1) * sizeof(*more)) : NULL;

	if (!more)
		return NULL;
	n->cells = more;
	more[n->count] = (struct cell){ .is_run = true, .is_echoed = true };
	return &more[n->count++];
}

/* ---- running */

struct running {
	struct notebook *n;
	json_t *outputs;
	int stream;         /* of pending */
	struct buf pending; /* pieces of one stream that follow each other, as one text */
	bool is_hidden;
};

/* A terminal shows nothing for a NUL, and the file is text, which has none. */
static void drop_nuls(struct buf *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->len; i++)
		if (b->data[i])
			b->data[kept++] = b->data[i];
	if (kept < b->len)
		b->data[kept] = '\0';
	b->len = kept;
}

static void end_stream(struct running *x)
{
	drop_nuls(&x->pending);
	if (x->pending.len > 0)
		nbformat_add_stream(x->outputs, x->stream, buf_text(&x->pending), x->pending.len);
	buf_clear(&x->pending);
}

static void keep(struct running *x, int stream, const char *bytes, size_t len)
{
	if (stream != x->stream || x->pending.len == 0) {
		end_stream(x);
		x->n->kept += STREAM_COST;
	}
	x->stream = stream;
	(void)buf_add(&x->pending, bytes, len);
	x->n->kept += len;
}

/* Output is shown as it comes. What is kept for the file has a limit, whatever the policy says. */
static void take_output(int stream, const char *bytes, size_t len, void *arg)
{
	struct running *x = arg;

	if (!x->is_hidden && len > 0) {
		(void)file_write_all(stream, bytes, len);
		x->n->is_midline = bytes[len - 1] != '\n';
	}
	size_t room = x->n->kept < KEPT_MAX ? KEPT_MAX - x->n->kept : 0;
	size_t n = len < room ? len : room;
	if (n > 0)
		keep(x, stream, bytes, n);
	if (n < len && room > 0)
		keep(x, 2, NOT_KEPT, strlen(NOT_KEPT));
}

/* What is printed next begins a line. */
static void begin_line(struct notebook *n, FILE *to)
{
	if (n->is_midline)
		(void)fputc('\n', to);
	n->is_midline = false;
}

/* Values, rich outputs and errors count too, and have some room when printed text has used its
 * own up. */
static bool has_room(const struct cli *c, struct notebook *n, struct cordon_result *r)
{
	const char *whole = cordon_result_json(r);
	size_t len = whole ? strlen(whole) : 0, most = KEPT_MAX + REST_MAX;
	size_t room = n->kept < most ? most - n->kept : 0; /* notes of a restart may exceed it */

	if (len > room)
		cli_error(c, "the outputs of %s are too large: not all are kept", n->path);
	n->kept += len < room ? len : 0;
	return len <= room;
}

static void print_result(const struct cli *c, struct notebook *n, const struct cell *cell,
			 struct cordon_result *r)
{
	const char *text = cordon_result_value_text(r), *trace = cordon_result_traceback(r);

	if (cordon_result_success(r)) {
		if (text && !cell->is_hidden) {
			begin_line(n, stdout);
			puts(text);
		}
		(void)fflush(stdout);
		return;
	}
	(void)fflush(stdout);
	begin_line(n, stderr);
	bool has_trace = trace && trace[0];
	if (has_trace)
		fprintf(stderr, "%s%s", trace, str_ends(trace, "\n") ? "" : "\n");
	/* The trace then says where the code was, not why it ended. */
	if (!has_trace || str_eq(cordon_result_error_kind(r), "timeout"))
		cli_error(c, "%s: %s", cordon_result_error_kind(r), cordon_result_error(r));
	outcome_print_denials(c, r);
	if (!cell->may_fail)
		cli_error(c, "%s: %s %zu failed", n->path,
			  n->is_document ? "the chunk at line" : "cell", cell->place);
}

/* Variables of earlier cells are gone: said to the user and to whoever reads the file. */
static void tell_restarted(const struct cli *c, struct running *x, const struct cordon_result *r)
{
	cleanup_free char *text = cordon_result_restart_text(r);
	cleanup_free char *line = text && text[0] ? str_printf("cordon: %s\n", text) : NULL;

	if (!line)
		return;
	begin_line(x->n, stderr);
	cli_error(c, "%s", text);
	keep(x, 2, line, strlen(line));
}

static int run_piece(const struct cli *c, struct notebook *n, struct cell *cell, const char *code,
		     struct cordon_session *s, int *ret_status, struct cordon_error **reterr)
{
	struct running x = { .n = n, .outputs = json_array(), .is_hidden = cell->is_hidden };
	buf_init(&x.pending, KEPT_MAX + REST_MAX);
	struct cordon_execute_options o = { .code = code,
					    .output = take_output,
					    .output_arg = &x,
					    .discard_output = true,
					    .show_values = true };
	struct cordon_result *result = NULL;
	int r = cordon_session_execute(s, &o, &result, reterr);

	if (r < 0) {
		json_decref(x.outputs);
		buf_done(&x.pending);
		return err_wrap(reterr, r, "%s %zu", n->is_document ? "chunk at line" : "cell",
				cell->place);
	}
	tell_restarted(c, &x, result);
	end_stream(&x);
	buf_done(&x.pending);
	cleanup_json json_t *outputs = nbformat_outputs(
		x.outputs, has_room(c, n, result) ? result : NULL, cell->guest, cell->number);
	json_array_extend(cell->outputs, outputs);
	print_result(c, n, cell, result);
	*ret_status = cordon_result_exit_status(result);
	cordon_result_free(result);
	return 0;
}

/* How much of R code is its first complete piece. R prints the value of each, as its console and
 * knitr do; other languages have one value per cell. */
static size_t piece_len(struct cordon_session *s, const char *code)
{
	size_t len = 0;

	while (code[len]) {
		cleanup_free char *json = NULL;

		len += strcspn(code + len, "\n");
		len += code[len] == '\n';
		struct cordon_inspect_options o = { .question = CORDON_IS_COMPLETE,
						    .code = code,
						    .code_len = len };
		if (code[strspn(code, " \t\r\n")] == '\0' || !code[len] ||
		    cordon_session_inspect(s, &o, &json, NULL) < 0 || !json ||
		    !strstr(json, "\"incomplete\""))
			break;
	}
	return len;
}

static int run_cell(const struct cli *c, struct notebook *n, struct cell *cell,
		    struct cordon_session *s, int *ret_status, struct cordon_error **reterr)
{
	bool is_r = str_eq(cell->guest, "r");
	int r = 0, status = 0;

	cell->outputs = json_array();
	if (!str_eq(cell->guest, n->guest)) /* one sandbox, several languages */
		r = cordon_session_context(s, cell->guest, NULL, &s, reterr);
	for (const char *at = cell->code; r == 0 && status == 0 && *at;) {
		size_t len = is_r ? piece_len(s, at) : strlen(at);
		cleanup_free char *piece = str_ndup(at, len);

		if (!piece || !cell->outputs)
			return err_errno(reterr, ENOMEM, "%s", n->path);
		if (piece[strspn(piece, " \t\r\n")])
			r = run_piece(c, n, cell, piece, s, &status, reterr);
		at += len;
	}
	*ret_status = cell->may_fail ? 0 : status;
	return r;
}

int notebook_run(const struct cli *c, struct notebook *n, struct cordon_session *s, int *ret_status,
		 struct cordon_error **reterr)
{
	bool keeps_going = cli_has(c, "keep-going");
	size_t number = 0;

	*ret_status = 0;
	for (size_t i = 0; i < n->count; i++) {
		int status = 0;

		if (!n->cells[i].is_run)
			continue;
		n->cells[i].number = ++number;
		int r = run_cell(c, n, &n->cells[i], s, &status, reterr);
		if (r < 0)
			return r;
		*ret_status = *ret_status ? *ret_status : status;
		if (status && !keeps_going)
			break;
	}
	return 0;
}

/* The value of a cell has its text, which was printed. A figure's text says nothing. */
static void count_unshown(struct unshown *u, const json_t *output)
{
	json_t *data = json_object_get(output, "data"), *value;
	bool has_text = json_object_get(data, "text/plain"), is_counted = false;
	const char *mime;

	json_object_foreach(data, mime, value)
	{
		bool is_shown = has_text && !str_starts(mime, "image/");

		if (!is_counted && !is_shown)
			unshown_count(u, mime);
		is_counted = is_counted || !is_shown;
	}
}

void notebook_tell_unshown(const struct notebook *n, const struct cli *c)
{
	struct unshown u = { 0 };

	for (size_t i = 0; i < n->count; i++) {
		json_t *output;
		size_t k;

		if (!n->cells[i].is_hidden)
			json_array_foreach(n->cells[i].outputs, k, output)
				count_unshown(&u, output);
	}
	unshown_tell(&u, c,
		     n->is_document ? "-o FILE.md writes them" : "-o FILE.ipynb writes them");
}

int notebook_check_target(const char *path, struct cordon_error **reterr)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *folder =
		slash ? str_ndup(path, (size_t)(slash + 1 - path)) : str_dup(".");
	bool exists = access(path, F_OK) == 0;

	if (!folder)
		return err_errno(reterr, ENOMEM, "%s", path);
	if (access(folder, W_OK) != 0 || (exists && access(path, W_OK) != 0))
		return err_errno(reterr, errno, "cannot write '%s'", path);
	return 0;
}

int notebook_save(const struct notebook *n, const char *path, struct cordon_error **reterr)
{
	cleanup_buf struct buf b = { 0 };

	buf_init(&b, SIZE_MAX / 2);
	int r = n->is_document ? chunk_write(n, &b, reterr) : nbformat_write(n, &b, reterr);
	return r < 0 ? r : file_save(path, 0644, buf_text(&b), b.len, reterr);
}
