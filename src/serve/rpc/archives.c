/* serve/rpc/archives.c - methods for tar streams, saved workspaces, exports and projects. */
#include <cordon/cordon.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "serve/rpc/filetype.h"
#include "serve/rpc/payload.h"
#include "serve/rpc/target.h"

enum { PATHS_MAX = 65536 };

static int put_tar(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *path = NULL;
	cleanup_close int fd = -1;
	cleanup_free char *report = NULL;
	int r = target_need(q, "path", &path, reterr);

	if (r == 0)
		r = payload_open(q, &fd, reterr);
	if (r == 0)
		r = cordon_file_put_tar(q->cs->session, path, fd, &report, reterr);
	return r < 0 ? r : buf_printf(ret, "{\"ok\":true,\"report\":%s}", report ? report : "null");
}

static int get_tar(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *path = NULL, *to = NULL;
	cleanup_close int fd = -1;
	cleanup_free char *report = NULL;
	int r = target_need(q, "path", &path, reterr);

	if (r == 0)
		r = payload_create(q, &to, &fd, reterr);
	if (r == 0)
		r = cordon_file_get_tar(q->cs->session, path, fd, &report, reterr);
	if (fd >= 0)
		r = payload_answer(q, to, fd, r, ret, reterr);
	if (r < 0)
		return r;
	ret->len--; /* the closing brace */
	return buf_printf(ret, ",\"report\":%s}", report ? report : "null");
}

/* ---- saved workspaces, and exports by name or path */

static int add_text(struct buf *ret, const char *key, char *json, int r)
{
	cleanup_free char *text = json;

	return r < 0 ? r : buf_printf(ret, "{\"%s\":%s}", key, text);
}

static int list_saved(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	char *json = NULL;
	int r = cordon_saved_list(&json, reterr);

	(void)q;
	return add_text(ret, "saved", json, r);
}

static int open_saved(const struct request *q, const char *key, int *ret_fd,
		      struct cordon_error **reterr)
{
	const char *name = NULL;
	int r = target_need(q, key, &name, reterr);

	return r < 0 ? r : cordon_saved_open(name, ret_fd, reterr);
}

static int read_saved(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_close int fd = -1;
	int r = open_saved(q, "name", &fd, reterr);

	return r < 0 ? r : payload_add(fd, ret, reterr);
}

static int import_saved(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *name = NULL;
	char *report = NULL;
	cleanup_close int fd = -1;
	int r = target_need(q, "name", &name, reterr);

	if (r == 0)
		r = payload_open(q, &fd, reterr);
	if (r == 0)
		r = cordon_saved_import(name, fd, &report, reterr);
	return add_text(ret, "report", report, r);
}

static int remove_saved(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *name = NULL;
	int r = target_need(q, "name", &name, reterr);

	if (r == 0)
		r = cordon_saved_remove(name, reterr);
	return r < 0 ? r : buf_add_str(ret, "{\"ok\":true}");
}

static int add_entry(const char *path, const struct cordon_file_info *info, const char *link,
		     void *arg)
{
	json_t *j = json_object();

	json_object_set_new(j, "path", json_string_lossy(path, strlen(path)));
	json_object_set_new(j, "type", json_string(filetype_name(info)));
	json_object_set_new(j, "size", json_integer((json_int_t)info->size));
	json_object_set_new(j, "mode", json_integer(info->mode & 07777));
	if (link)
		json_object_set_new(j, "link", json_string_lossy(link, strlen(link)));
	return json_array_append_new(arg, j) == 0 ? 0 : -CORDON_NOMEM;
}

static int list_export(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_json json_t *entries = json_array();
	cleanup_close int fd = -1;
	int r = open_saved(q, "name", &fd, reterr);

	if (r == 0)
		r = cordon_export_list(fd, add_entry, entries, reterr);
	if (r < 0)
		return r;
	char *text = json_text(entries, NULL);
	return add_text(ret, "entries", text,
			text ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory"));
}

static int read_export(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *path = NULL, *to = NULL;
	cleanup_close int fd = -1, out = -1;
	int r = target_need(q, "path", &path, reterr);

	if (r == 0)
		r = open_saved(q, "name", &fd, reterr);
	if (r == 0)
		r = payload_create(q, &to, &out, reterr);
	if (r == 0)
		r = cordon_export_read(fd, path, out, reterr);
	return out < 0 ? r : payload_answer(q, to, out, r, ret, reterr);
}

static int diff_exports(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_close int old = -1, new = -1;
	char *json = NULL;
	int r = open_saved(q, "old", &old, reterr);

	if (r == 0)
		r = open_saved(q, "new", &new, reterr);
	if (r == 0)
		r = cordon_export_diff(old, new, &json, reterr);
	return add_text(ret, "changes", json, r);
}

/* ---- a project: a host directory's copy in the session */

static int need_project(const struct request *q, struct cordon_error **reterr)
{
	return q->cs->project ? 0 : err_set(reterr, CORDON_STATE, "project.open comes first");
}

static int open_project(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *directory = NULL;
	int r = target_need(q, "directory", &directory, reterr);

	if (r == 0 && q->cs->project)
		r = err_set(reterr, CORDON_EXISTS, "the session has a project already");
	if (r == 0)
		r = cordon_project_open(q->cs->session, directory, &q->cs->project, reterr);
	return r < 0 ? r : buf_add_str(ret, "{\"ok\":true}");
}

static int diff_project(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_free char *json = NULL;
	int r = need_project(q, reterr);

	if (r == 0)
		r = cordon_project_diff(q->cs->project, &json, reterr);
	return r < 0 ? r : buf_add_str(ret, json);
}

static int apply_project(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_strlist struct strlist paths = { 0 };
	cleanup_free char *json = NULL;
	json_t *given = NULL, *path;
	size_t i;
	int r = need_project(q, reterr);

	if (r == 0)
		r = json_get_array(q->params, "/params", "paths", &given, reterr);
	if (r == 0 && json_array_size(given) > PATHS_MAX)
		r = err_set(reterr, CORDON_INVALID, "at most %d paths", PATHS_MAX);
	if (r < 0)
		return r;
	json_array_foreach(given, i, path)
	{
		if (!json_is_string(path))
			return err_set(reterr, CORDON_INVALID, "/params/paths/%zu must be a string",
				       i);
		if (strlist_add(&paths, json_string_value(path)) < 0)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	r = cordon_project_apply(q->cs->project, given ? (const char *const *)paths.items : NULL,
				 paths.count, &json, reterr);
	return r < 0 ? r : buf_add_str(ret, json);
}

static int close_project(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	(void)reterr;
	q->cs->project = cordon_project_close(q->cs->project);
	return buf_add_str(ret, "{\"ok\":true}");
}

/* Methods on a project occupy the session, so that nothing else changes the files meanwhile. */
const struct rpc_method rpc_archive_methods[] = {
	{ "files.put_tar", put_tar, RPC_SLOW | RPC_SESSION, "path data from attached" },
	{ "files.get_tar", get_tar, RPC_SLOW | RPC_SESSION, "path to attach" },
	{ "saved.list", list_saved, RPC_SLOW, "" },
	{ "saved.read", read_saved, RPC_SLOW, "name" },
	{ "saved.import", import_saved, RPC_SLOW, "name data from attached" },
	{ "saved.remove", remove_saved, RPC_SLOW, "name" },
	{ "export.list", list_export, RPC_SLOW, "name" },
	{ "export.read", read_export, RPC_SLOW, "name path to" },
	{ "export.diff", diff_exports, RPC_SLOW, "old new" },
	{ "project.open", open_project, RPC_SLOW | RPC_SESSION | RPC_EXECUTE, "directory" },
	{ "project.diff", diff_project, RPC_SLOW | RPC_SESSION | RPC_EXECUTE, "" },
	{ "project.apply", apply_project, RPC_SLOW | RPC_SESSION | RPC_EXECUTE, "paths" },
	{ "project.close", close_project, RPC_SLOW | RPC_SESSION | RPC_EXECUTE, "" },
	{ 0 },
};
