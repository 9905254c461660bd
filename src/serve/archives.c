/* serve/archives.c - the methods on tar streams, saved workspaces, exports and projects. */
#include <cordon/cordon.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "serve/target.h"

enum { INLINE_MAX = 32 << 20, PATHS_MAX = 65536 };

/* The bytes that come with the request: data as base64, or from, a file of the host. */
static int open_input(const struct request *q, int *ret_fd, struct cordon_error **reterr)
{
	const char *from = NULL, *data = NULL;
	cleanup_free void *bytes = NULL;
	size_t len = 0;
	int r = target_string(q, "from", &from, reterr);

	if (r == 0 && from) {
		*ret_fd = open(from, O_RDONLY | O_CLOEXEC);
		return *ret_fd >= 0 ? 0 : err_errno(reterr, errno, "open '%s'", from);
	}
	if (r == 0)
		r = target_need(q, "data", &data, reterr);
	if (r == 0)
		r = base64_decode(data, strlen(data), &bytes, &len, reterr);
	return r < 0 ? r : file_from_bytes("cordon-input", bytes, len, ret_fd, reterr);
}

/* {data, length}, for what fits into an answer. */
static int add_output(int fd, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_buf struct buf b = { 0 };

	buf_init(&b, INLINE_MAX);
	if (lseek(fd, 0, SEEK_SET) != 0)
		return err_errno(reterr, errno, "read the bytes");
	int r = file_read_to_end(fd, &b, reterr);
	if (r < 0)
		return err_wrap(reterr, r,
				"more than fits into an answer: name a file with \"to\"");
	cleanup_free char *text = base64_encode(b.data, b.len, NULL);
	return text ? buf_printf(ret, "{\"data\":\"%s\",\"length\":%zu}", text, b.len)
		    : err_set(reterr, CORDON_NOMEM, "out of memory");
}

/* to: a new file of the host; otherwise memory. */
static int open_output(const struct request *q, const char **ret_to, int *ret_fd,
		       struct cordon_error **reterr)
{
	int r = target_string(q, "to", ret_to, reterr);

	if (r < 0)
		return r;
	*ret_fd = *ret_to ? open(*ret_to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
			  : memfd_create("cordon-output", MFD_CLOEXEC);
	return *ret_fd >= 0 ? 0
			    : err_errno(reterr, errno, "create '%s'", *ret_to ? *ret_to : "memory");
}

static int finish_output(const char *to, int fd, int r, struct buf *ret,
			 struct cordon_error **reterr)
{
	if (r < 0 && to)
		(void)unlink(to);
	if (r < 0)
		return r;
	return to ? buf_printf(ret, "{\"length\":%lld}", (long long)lseek(fd, 0, SEEK_END))
		  : add_output(fd, ret, reterr);
}

static int put_tar(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *path = NULL;
	cleanup_close int fd = -1;
	int r = target_need(q, "path", &path, reterr);

	if (r == 0)
		r = open_input(q, &fd, reterr);
	if (r == 0)
		r = cordon_file_put_tar(q->seat->session, path, fd, reterr);
	return r < 0 ? r : buf_add_str(ret, "{\"ok\":true}");
}

static int get_tar(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *path = NULL, *to = NULL;
	cleanup_close int fd = -1;
	int r = target_need(q, "path", &path, reterr);

	if (r == 0)
		r = open_output(q, &to, &fd, reterr);
	if (r == 0)
		r = cordon_file_get_tar(q->seat->session, path, fd, reterr);
	return fd < 0 ? r : finish_output(to, fd, r, ret, reterr);
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

	return r < 0 ? r : add_output(fd, ret, reterr);
}

static int import_saved(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *name = NULL;
	char *report = NULL;
	cleanup_close int fd = -1;
	int r = target_need(q, "name", &name, reterr);

	if (r == 0)
		r = open_input(q, &fd, reterr);
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
	static const char *const types[] = { "file", "directory", "symlink", "other" };
	json_t *j = json_object();

	json_object_set_new(j, "path", json_string_lossy(path, strlen(path)));
	json_object_set_new(j, "type", json_string(types[info->type]));
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
		r = open_output(q, &to, &out, reterr);
	if (r == 0)
		r = cordon_export_read(fd, path, out, reterr);
	return out < 0 ? r : finish_output(to, out, r, ret, reterr);
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
	return q->seat->project ? 0 : err_set(reterr, CORDON_STATE, "project.open comes first");
}

static int open_project(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *directory = NULL;
	int r = target_need(q, "directory", &directory, reterr);

	if (r == 0 && q->seat->project)
		r = err_set(reterr, CORDON_EXISTS, "the session has a project already");
	if (r == 0)
		r = cordon_project_open(q->seat->session, directory, &q->seat->project, reterr);
	return r < 0 ? r : buf_add_str(ret, "{\"ok\":true}");
}

static int diff_project(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_free char *json = NULL;
	int r = need_project(q, reterr);

	if (r == 0)
		r = cordon_project_diff(q->seat->project, &json, reterr);
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
	r = cordon_project_apply(q->seat->project, given ? (const char *const *)paths.items : NULL,
				 paths.count, &json, reterr);
	return r < 0 ? r : buf_add_str(ret, json);
}

static int close_project(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	(void)reterr;
	q->seat->project = cordon_project_close(q->seat->project);
	return buf_add_str(ret, "{\"ok\":true}");
}

/* Those on a project occupy the session: nothing else may change what they look at. */
const struct rpc_method rpc_archive_methods[] = {
	{ "files.put_tar", put_tar, RPC_SLOW | RPC_SESSION },
	{ "files.get_tar", get_tar, RPC_SLOW | RPC_SESSION },
	{ "saved.list", list_saved, RPC_SLOW },
	{ "saved.read", read_saved, RPC_SLOW },
	{ "saved.import", import_saved, RPC_SLOW },
	{ "saved.remove", remove_saved, RPC_SLOW },
	{ "export.list", list_export, RPC_SLOW },
	{ "export.read", read_export, RPC_SLOW },
	{ "export.diff", diff_exports, RPC_SLOW },
	{ "project.open", open_project, RPC_SLOW | RPC_SESSION | RPC_EXECUTE },
	{ "project.diff", diff_project, RPC_SLOW | RPC_SESSION | RPC_EXECUTE },
	{ "project.apply", apply_project, RPC_SLOW | RPC_SESSION | RPC_EXECUTE },
	{ "project.close", close_project, RPC_SLOW | RPC_SESSION | RPC_EXECUTE },
	{ 0 },
};
