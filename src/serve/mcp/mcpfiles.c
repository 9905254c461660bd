/* serve/mcp/mcpfiles.c - MCP tools for a sandbox's files: single files, snapshots, exports. */
#include <cordon/cordon.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/str.h"
#include "serve/mcp/mcptool.h"
#include "serve/rpc/filetype.h"
#include "serve/rpc/payload.h"

enum { TEXT_MAX = 16 << 20, EXPORT_MAX = 64 << 20 };

int mcptool_read_file(struct mcpcall *c, struct cordon_error **reterr)
{
	const char *path = NULL;
	cleanup_free char *bytes = NULL, *coded = NULL;
	size_t len = 0;
	int r = mcpcall_need(c, "path", &path, reterr);

	if (r == 0)
		r = mcptool_find(c, "sh", reterr);
	if (r == 0)
		r = cordon_file_read(c->cs->session, path, &bytes, &len, reterr);
	if (r < 0)
		return err_wrap(reterr, r, "Error reading file");
	const char *data = bytes ? bytes : "";
	bool is_text = len <= TEXT_MAX && str_is_utf8(data, len) && !memchr(data, 0, len);
	if (!is_text && !(coded = base64_encode(data, len, NULL)))
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	json_object_set_new(c->structured, "encoding", json_string(is_text ? "text" : "base64"));
	json_object_set_new(c->structured, "contents",
			    is_text ? json_stringn(data, len) : json_string(coded));
	c->text = is_text ? str_ndup(data, len) : TAKE_PTR(coded);
	return 0;
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

static int add_entry(const char *name, const struct cordon_file_info *info, void *arg_list)
{
	json_t *e = json_object();

	json_object_set_new(e, "name", json_string_lossy(name, strlen(name)));
	json_object_set_new(e, "type", json_string(filetype_name(info)));
	json_object_set_new(e, "size", json_integer((json_int_t)info->size));
	return json_array_append_new(arg_list, e) == 0 ? 0 : -CORDON_NOMEM;
}

int mcptool_list_directory(struct mcpcall *c, struct cordon_error **reterr)
{
	const char *path = mcpcall_arg(c, "path");
	json_t *entries = json_array();
	int r = mcptool_find(c, "sh", reterr);

	json_object_set_new(c->structured, "entries", entries);
	if (r == 0)
		r = cordon_file_list(c->cs->session, path ? path : "/home/user", add_entry, entries,
				     reterr);
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
			    : mcptool_open(c, "sh", mcpcall_arg(c, "label"), false, reterr);
	if (r == 0)
		r = cordon_files_import(c->cs->session, fd, &report, reterr);
	if (r == 0)
		json_object_set_new(c->structured, "sandbox_id", json_string(c->cs->id));
	return r;
}
