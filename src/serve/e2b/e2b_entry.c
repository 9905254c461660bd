/* serve/e2b/e2b_entry.c - see e2b_entry.h. */
#include "serve/e2b/e2b_entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/os.h"
#include "base/str.h"
#include "files/path_lookup.h"
#include "session/session.h"

#define PREFIX "user.e2b."
enum { NAME_BYTES = 256, VALUE_MAX = 4096, NAMES_MAX = 16 << 10, PATH_BYTES = 8192 };

/* Adds one segment of a path, of len bytes; ".." removes the last one. */
static int add_segment(struct buf *b, const char *name, size_t len)
{
	if (len == 0 || (len == 1 && *name == '.'))
		return 0;
	if (len != 2 || strncmp(name, "..", 2) != 0)
		return buf_add_char(b, '/') < 0 ? -1 : buf_add(b, name, len);
	while (b->len > 0 && b->data[--b->len] != '/')
		;
	if (b->data)
		b->data[b->len] = '\0';
	return 0;
}

char *e2b_entry_path(const char *path)
{
	cleanup_buf struct buf b = { 0 };
	bool is_home = path[0] == '~' && (path[1] == '/' || path[1] == '\0');

	buf_init(&b, PATH_BYTES);
	if (path[0] != '/' && buf_add_str(&b, "/home/user") < 0)
		return NULL;
	for (path += is_home; *path;) {
		size_t len = strcspn(path, "/");

		if (add_segment(&b, path, len) < 0)
			return NULL;
		path += len + (path[len] == '/');
	}
	return str_dup(b.len ? buf_text(&b) : "/");
}

const char *e2b_entry_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* "-rw-r--r--" */
static void mode_text(const struct cordon_file_info *info, char ret[static 11])
{
	static const char bits[] = "rwxrwxrwx";

	ret[0] = info->type == CORDON_DIRECTORY ? 'd' : info->type == CORDON_SYMLINK ? 'L' : '-';
	for (int i = 0; i < 9; i++)
		ret[1 + i] = info->mode & (1U << (8 - i)) ? bits[i] : '-';
	ret[10] = '\0';
}

static json_t *time_json(int64_t ns)
{
	char date[32], text[48];
	time_t s = (time_t)(ns / 1000000000);
	struct tm tm;

	gmtime_r(&s, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%09lldZ", date, (long long)(ns % 1000000000));
	return json_string(text);
}

/* ---- metadata */

/* Opens the entry; a negative code if it is no file or directory that can be read. */
static int open_entry(const struct workspace *ws, const char *path, int *ret_fd)
{
	cleanup_path_lookup struct path_lookup p = PATH_LOOKUP_INIT;
	int r = path_lookup_find(ws, path, PATH_LOOKUP_FOLLOW, &p);

	if (r == 0 && p.dir_fd >= 0)
		r = path_lookup_open(&p, O_RDONLY, 0);
	if (r < 0 || p.dir_fd < 0)
		return -1;
	*ret_fd = r;
	return 0;
}

static void add_attribute(int fd, const char *name, json_t *metadata)
{
	char value[VALUE_MAX];
	ssize_t n = os_attribute_get(fd, name, value, sizeof(value));

	if (n >= 0 && json_object_size(metadata) < E2B_METADATA_MAX)
		json_object_set_new(metadata, name + strlen(PREFIX),
				    json_string_lossy(value, (size_t)n));
}

static json_t *metadata_of(const struct workspace *ws, const char *path)
{
	cleanup_close int fd = -1;
	struct owner owner;
	char names[NAMES_MAX];
	json_t *ret = json_object();

	if (path_lookup_enter(ws, &owner, NULL) < 0)
		return ret;
	if (open_entry(ws, path, &fd) == 0) {
		ssize_t n = os_attribute_list(fd, names, sizeof(names));

		for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1)
			if (str_starts(names + i, PREFIX) &&
			    str_is_utf8(names + i, strlen(names + i)))
				add_attribute(fd, names + i, ret);
	}
	owner_leave(&owner);
	return ret;
}

static void remove_attributes(int fd)
{
	char names[NAMES_MAX];
	ssize_t n = os_attribute_list(fd, names, sizeof(names));

	for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1)
		if (str_starts(names + i, PREFIX))
			(void)os_attribute_remove(fd, names + i);
}

int e2b_entry_set_metadata(struct cordon_session *s, const char *path, const json_t *metadata,
			   struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL;
	cleanup_close int fd = -1;
	struct owner owner;
	const char *name;
	json_t *value;
	int r = session_workspace_at(s, path, &ws, reterr);

	if (r == 0)
		r = path_lookup_enter(ws, &owner, reterr);
	if (r < 0)
		return r;
	if (open_entry(ws, path, &fd) < 0)
		r = err_set(reterr, CORDON_NOT_FOUND, "'%s' cannot be opened", path);
	if (r == 0)
		remove_attributes(fd);
	json_object_foreach((json_t *)(uintptr_t)metadata, name, value)
	{
		char full[NAME_BYTES];
		int n = snprintf(full, sizeof(full), PREFIX "%s", name);
		int failed = n >= (int)sizeof(full)
				     ? -ENAMETOOLONG
				     : os_attribute_set(fd, full, json_string_value(value),
							json_string_length(value));

		if (r == 0 && failed)
			r = err_errno(reterr, -failed, "set the metadata of '%s'", path);
	}
	owner_leave(&owner);
	return r;
}

/* ---- entries */

static void add_link(const struct workspace *ws, const char *path, json_t *j)
{
	cleanup_free char *target = NULL, *beside = NULL, *full = NULL;

	if (workspace_readlink((struct workspace *)(uintptr_t)ws, path, &target, NULL) < 0)
		return;
	beside = *target == '/'
			 ? str_dup(target)
			 : str_printf("%.*s%s", (int)(strlen(path) - strlen(e2b_entry_name(path))),
				      path, target);
	full = beside ? e2b_entry_path(beside) : NULL;
	if (full)
		json_object_set_new(j, "symlinkTarget", json_string_lossy(full, strlen(full)));
}

static json_t *entry(const struct workspace *ws, const char *path,
		     const struct cordon_file_info *info)
{
	static const char *const types[] = { "FILE_TYPE_FILE", "FILE_TYPE_DIRECTORY",
					     "FILE_TYPE_SYMLINK", "FILE_TYPE_UNSPECIFIED" };
	const char *name = e2b_entry_name(path);
	char mode[11], size[24];
	json_t *j = json_object(), *metadata;

	mode_text(info, mode);
	snprintf(size, sizeof(size), "%llu", (unsigned long long)info->size);
	json_object_set_new(j, "name", json_string_lossy(name, strlen(name)));
	json_object_set_new(j, "type", json_string(types[info->type]));
	json_object_set_new(j, "path", json_string_lossy(path, strlen(path)));
	json_object_set_new(j, "size", json_string(size));
	json_object_set_new(j, "mode", json_integer(info->mode & 07777));
	json_object_set_new(j, "permissions", json_string(mode));
	json_object_set_new(j, "owner", json_string("user"));
	json_object_set_new(j, "group", json_string("user"));
	json_object_set_new(j, "modifiedTime", time_json(info->mtime_ns));
	if (info->type == CORDON_SYMLINK) {
		add_link(ws, path, j);
		return j;
	}
	metadata = metadata_of(ws, path);
	if (json_object_size(metadata))
		json_object_set(j, "metadata", metadata);
	json_decref(metadata);
	return j;
}

int e2b_entry_describe(struct cordon_session *s, const char *path, json_t **ret,
		       struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = NULL;
	struct cordon_file_info info;
	int r = session_workspace_at(s, path, &ws, reterr);

	if (r == 0)
		r = workspace_stat(ws, path, &info, reterr);
	if (r == 0)
		*ret = entry(ws, path, &info);
	return r;
}

int e2b_entry_written(struct cordon_session *s, const char *path, json_t **ret,
		      struct cordon_error **reterr)
{
	cleanup_json json_t *all = NULL;
	int r = e2b_entry_describe(s, path, &all, reterr);
	json_t *j, *metadata;

	if (r < 0)
		return r;
	j = json_object();
	json_object_set(j, "name", json_object_get(all, "name"));
	json_object_set_new(j, "type", json_string("file"));
	json_object_set(j, "path", json_object_get(all, "path"));
	metadata = json_object_get(all, "metadata");
	if (metadata)
		json_object_set(j, "metadata", metadata);
	*ret = j;
	return 0;
}
