/* serve/mcp/mcpfiles.c - MCP tools for a sandbox's files: single files, snapshots, exports. */
#include <cordon/cordon.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "serve/mcp/mcptext.h"
#include "serve/mcp/mcptool.h"
#include "serve/rpc/filetype.h"
#include "serve/rpc/payload.h"

enum { TEXT_MAX = 16 << 20, EXPORT_MAX = 64 << 20, IMAGE_MAX = 3 << 20 };
enum { ENTRIES_MAX = 500, LINES_MAX = 1 << 20 };

/* The type of an image that a model can be shown, by its first bytes; NULL: it is none. */
static const char *image_type(const char *data, size_t len)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *mime;
	} table[] = { { "\x89PNG\r\n\x1a\n", 8, "image/png" },
		      { "\xff\xd8\xff", 3, "image/jpeg" },
		      { "GIF8", 4, "image/gif" } };

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (len > table[i].len && !memcmp(data, table[i].bytes, table[i].len))
			return table[i].mime;
	return len > 12 && !memcmp(data, "RIFF", 4) && !memcmp(data + 8, "WEBP", 4) ? "image/webp"
										    : NULL;
}

/* Leaves the lines that the call asks for. */
static void choose_lines(const struct mcpcall *c, const char **data, size_t *len)
{
	json_int_t skip = json_integer_value(json_object_get(c->args, "offset"));
	json_int_t count = json_integer_value(json_object_get(c->args, "limit"));
	const char *at = *data, *end = *data + *len, *nl;

	for (; skip > 1 && (nl = memchr(at, '\n', (size_t)(end - at))); skip--)
		at = nl + 1;
	if (skip > 1)
		at = end; /* there are fewer */
	*data = at;
	for (nl = NULL; count > 0 && (nl = memchr(at, '\n', (size_t)(end - at))); count--)
		at = nl + 1;
	*len = (size_t)((nl ? at : end) - *data);
}

/* Why there is no text. */
static char *tell_nothing(const char *data, size_t len)
{
	size_t lines = len > 0 && data[len - 1] != '\n';

	for (size_t i = 0; i < len; i++)
		lines += data[i] == '\n';
	return len == 0 ? str_dup("(the file is empty)")
			: str_printf("(there is nothing: the file has %zu lines)", lines);
}

static void show_text(struct mcpcall *c, const char *data, size_t len)
{
	const char *from = data;
	size_t whole = len;

	choose_lines(c, &data, &len);
	c->text = c->mcp->options.lists_all
			  ? str_ndup(data, len)
			  : mcptext_cut(data, len, 4 * (size_t)MCPTEXT_MAX,
					"offset and limit of read_file choose lines");
	const char *text = c->text ? c->text : "";
	cleanup_free char *why = len > 0 ? NULL : tell_nothing(from, whole);
	json_object_set_new(c->structured, "contents", json_string_lossy(text, strlen(text)));
	json_object_set_new(c->structured, "encoding", json_string("text"));
	json_object_set_new(c->structured, "bytes", json_integer((json_int_t)whole));
	if (why) {
		free(c->text);
		c->text = TAKE_PTR(why);
	}
}

static int show_bytes(struct mcpcall *c, const char *data, size_t len, struct cordon_error **reterr)
{
	const char *mime = image_type(data, len);
	bool is_shown = mime && len <= IMAGE_MAX && !c->mcp->options.lists_all;
	cleanup_free char *coded = base64_encode(data, len, NULL);

	if (!coded)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	json_object_set_new(c->structured, "encoding", json_string("base64"));
	json_object_set_new(c->structured, "bytes", json_integer((json_int_t)len));
	if (is_shown) {
		mcptext_add_image(c, mime, coded);
		c->text = str_printf("%s, %zu bytes", mime, len);
		return 0;
	}
	json_object_set_new(c->structured, "contents", json_string(coded));
	c->text = c->mcp->options.lists_all
			  ? TAKE_PTR(coded)
			  : str_printf("(%zu bytes that are no text, in base64:)\n%s", len, coded);
	return 0;
}

int mcptool_read_file(struct mcpcall *c, struct cordon_error **reterr)
{
	const char *path = NULL;
	cleanup_free char *bytes = NULL;
	size_t len = 0;
	int r = mcpcall_need(c, "path", &path, reterr);

	if (r == 0)
		r = mcptool_find(c, "sh", reterr);
	if (r == 0)
		r = cordon_file_read(c->cs->session, path, &bytes, &len, reterr);
	if (r < 0)
		return err_wrap(reterr, r, "Error reading file");
	const char *data = bytes ? bytes : "";
	if (len <= TEXT_MAX && str_is_utf8(data, len) && !memchr(data, 0, len))
		show_text(c, data, len);
	else
		r = show_bytes(c, data, len, reterr);
	return r;
}

int mcptool_write_file(struct mcpcall *c, struct cordon_error **reterr)
{
	const char *path = NULL, *contents = NULL;
	cleanup_free void *bytes = NULL;
	size_t len = 0;
	int r = mcpcall_need(c, "path", &path, reterr);

	if (r == 0)
		r = mcpcall_need(c, "contents", &contents, reterr);
	const char *encoding = mcpcall_arg(c, "encoding");
	if (r == 0 && encoding && !str_eq(encoding, "text") && !str_eq(encoding, "base64"))
		r = err_set(reterr, CORDON_INVALID, "the encoding is text or base64");
	if (r == 0)
		r = mcptool_find(c, "sh", reterr);
	if (r == 0 && str_eq(encoding, "base64"))
		r = base64_decode(contents, strlen(contents), &bytes, &len, reterr);
	else if (r == 0)
		len = json_string_length(json_object_get(c->args, "contents"));
	if (r == 0)
		r = cordon_file_write(c->cs->session, path, bytes ? bytes : contents, len, reterr);
	if (r < 0)
		return err_wrap(reterr, r, "Error writing file");
	json_object_set_new(c->structured, "bytes", json_integer((json_int_t)len));
	json_object_set_new(c->structured, "sandbox_id", json_string(c->cs->id));
	c->text = str_printf("%zu bytes written to %s", len, path);
	return 0;
}

struct entries {
	json_t *list;
	size_t count, max;
	struct buf lines; /* for models: "name/" or "name  size" */
};

static int add_entry(const char *name, const struct cordon_file_info *info, void *arg_entries)
{
	struct entries *x = arg_entries;

	if (x->count++ >= x->max)
		return 0;
	json_t *e = json_object();
	json_object_set_new(e, "name", json_string_lossy(name, strlen(name)));
	json_object_set_new(e, "type", json_string(filetype_name(info)));
	json_object_set_new(e, "size", json_integer((json_int_t)info->size));
	(void)buf_add_printable(&x->lines, name);
	if (info->type == CORDON_FILE)
		(void)buf_printf(&x->lines, "  %llu bytes\n", (unsigned long long)info->size);
	else
		(void)buf_printf(&x->lines, "%s\n",
				 info->type == CORDON_DIRECTORY ? "/"
				 : info->type == CORDON_SYMLINK ? "  (link)"
								: "  (not a file)");
	return json_array_append_new(x->list, e) == 0 ? 0 : -CORDON_NOMEM;
}

int mcptool_list_files(struct mcpcall *c, struct cordon_error **reterr)
{
	const char *path = mcpcall_arg(c, "path");
	bool is_whole = c->mcp->options.lists_all;
	struct entries x = { .list = json_array(), .max = is_whole ? SIZE_MAX : ENTRIES_MAX };
	int r = mcptool_find(c, "sh", reterr);

	buf_init(&x.lines, LINES_MAX);
	json_object_set_new(c->structured, "entries", x.list);
	if (r == 0)
		r = cordon_file_list(c->cs->session, path ? path : "/home/user", add_entry, &x,
				     reterr);
	if (x.count > x.max) {
		(void)buf_printf(&x.lines, "[... %zu more are left out ...]\n", x.count - x.max);
		json_object_set_new(c->structured, "left_out",
				    json_integer((json_int_t)(x.count - x.max)));
	}
	if (r == 0 && !is_whole)
		c->text = x.lines.len ? buf_take(&x.lines) : str_dup("(empty)");
	buf_done(&x.lines);
	return r < 0 ? err_wrap(reterr, r, "Error listing directory") : 0;
}

int mcptool_snapshot(struct mcpcall *c, struct cordon_error **reterr)
{
	char name[24];
	int r = mcptool_find_named(c, reterr);

	if (r < 0)
		return r;
	pthread_mutex_lock(&c->mcp->sessions.lock);
	snprintf(name, sizeof(name), "%u", ++c->cs->snapshots);
	pthread_mutex_unlock(&c->mcp->sessions.lock);
	r = cordon_snapshot_create(c->cs->session, name, reterr);
	if (r == 0)
		json_object_set_new(c->structured, "snapshot_id", json_string(name));
	return r;
}

int mcptool_restore(struct mcpcall *c, struct cordon_error **reterr)
{
	const char *name = NULL;
	int r = mcpcall_need(c, "snapshot_id", &name, reterr);

	if (r == 0)
		r = mcptool_find_named(c, reterr);
	return r < 0 ? r : cordon_snapshot_restore(c->cs->session, name, reterr);
}

int mcptool_export(struct mcpcall *c, struct cordon_error **reterr)
{
	cleanup_free char *text = NULL;
	int r = mcptool_find_named(c, reterr);

	if (r == 0)
		r = payload_export_text(c->cs->session, EXPORT_MAX, &text, reterr);
	if (r == 0)
		json_object_set_new(c->structured, "data", json_string(text));
	return r;
}

int mcptool_import(struct mcpcall *c, struct cordon_error **reterr)
{
	const char *data = NULL;
	cleanup_free void *bytes = NULL;
	cleanup_free char *report = NULL;
	cleanup_close int fd = -1;
	size_t len = 0;
	int r = mcpcall_need(c, "data", &data, reterr);

	if (r == 0)
		r = base64_decode(data, strlen(data), &bytes, &len, reterr);
	if (r == 0)
		r = file_from_bytes("cordon-import", bytes, len, &fd, reterr);
	if (r == 0)
		r = mcpcall_arg(c, "sandbox_id")
			    ? mcptool_find(c, "sh", reterr)
			    : mcptool_open(c, "sh", mcpcall_arg(c, "label"), MCPTOOL_NAMED, reterr);
	if (r == 0)
		r = cordon_files_import(c->cs->session, fd, &report, reterr);
	if (r == 0)
		json_object_set_new(c->structured, "sandbox_id", json_string(c->cs->id));
	return r;
}
