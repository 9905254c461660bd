/* files/apply.c - writes a project's changes back to the host directory. Every step works beneath
 * the directory's descriptor and follows no links. Files are written under another name and then
 * renamed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "files/change.h"
#include "files/content.h"
#include "files/path_lookup.h"

struct applying {
	struct review *r;
	int guest_fd;
	const char *const *paths; /* NULL: all */
	size_t path_count;
	json_t *applied, *refused;
};

static bool is_beneath(const char *rel, const char *path)
{
	size_t n = strlen(path);
	while (n && path[n - 1] == '/')
		n--;
	return !strncmp(rel, path, n) && (!rel[n] || rel[n] == '/');
}

/* Files that git may execute on the host by itself. */
static bool is_delicate(const char *rel)
{
	return is_beneath(rel, ".git") || strstr(rel, "/.git/") || str_ends(rel, "/.git");
}

static bool is_chosen(const struct applying *a, const char *rel)
{
	for (size_t i = 0; i < a->path_count; i++)
		if (is_beneath(rel, a->paths[i]))
			return true;
	return !a->paths;
}

/* The directory of a path on the host, O_PATH, or -errno. */
static int open_parent(int base_fd, const char *rel, const char **ret_name)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(rel, '/');
	size_t n = slash ? (size_t)(slash - rel) : 0;
	*ret_name = slash ? slash + 1 : rel;
	memcpy(parent, rel, n);
	parent[n] = '\0';
	return path_lookup_open_plain(base_fd, parent, O_PATH | O_DIRECTORY, 0);
}

/* Hashes what is on the host now: a file's content or a link's target. */
static int hash_host(const struct review *r, const char *rel, int path_fd, uint32_t mode,
		     unsigned char ret[static INTAKE_HASH_SIZE])
{
	if (S_ISREG(mode)) {
		cleanup_close int fd =
			path_lookup_open_plain(r->host_fd, rel, O_RDONLY | O_NONBLOCK, 0);
		return fd < 0 ? fd : intake_hash_fd(fd, ret);
	}
	char target[PATH_MAX];
	ssize_t n = readlinkat(path_fd, "", target, sizeof(target));
	if (n < 0)
		return -errno;
	intake_hash_bytes(target, (size_t)n, ret);
	return 0;
}

/* NULL if the host still has what was copied; otherwise the reason to refuse. */
static const char *check_host(const struct review *r, const struct change *c)
{
	cleanup_close int fd = path_lookup_open_plain(r->host_fd, c->rel, O_PATH, 0);
	struct stat st = { 0 };
	if (fd >= 0 && fstat(fd, &st))
		return "cannot be read on the host";
	if (!c->was) {
		bool is_dir = S_ISDIR(st.st_mode) && S_ISDIR(c->mode);
		return fd == -ENOENT || is_dir ? NULL : "appeared on the host meanwhile";
	}
	if (fd < 0)
		return "disappeared from the host meanwhile";
	if ((st.st_mode & S_IFMT) != (c->was->mode & S_IFMT))
		return "changed on the host meanwhile";
	unsigned char hash[INTAKE_HASH_SIZE];
	if (S_ISDIR(st.st_mode))
		return NULL;
	if (hash_host(r, c->rel, fd, st.st_mode, hash) < 0)
		return "cannot be read on the host";
	return memcmp(hash, c->was->hash, sizeof(hash)) ? "changed on the host meanwhile" : NULL;
}

static int open_copy(const struct applying *a, const char *rel)
{
	cleanup_owner struct owner owner = { 0 };
	const struct workspace_options *o = &a->r->ws->opts;
	int r = owner_enter(&owner, o->owner_uid, o->owner_gid);
	return r < 0 ? r : path_lookup_open_forced(a->guest_fd, rel, O_RDONLY);
}

static int pour(int from, int to)
{
	cleanup_free char *chunk = malloc(CONTENT_CHUNK);
	if (!chunk)
		return -ENOMEM;
	for (;;) {
		ssize_t n = file_read_full(from, chunk, CONTENT_CHUNK);
		if (n <= 0)
			return (int)n;
		int r = file_write_all(to, chunk, (size_t)n);
		if (r < 0)
			return r;
	}
}

/* If the host is root, the new file gets the owner of the old file, or of the directory. */
static void give(int fd, int dir_fd, const char *name)
{
	struct stat st;
	if (geteuid() == 0 && (!fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) ||
			       !fstatat(dir_fd, "", &st, AT_EMPTY_PATH)))
		(void)fchown(fd, st.st_uid, st.st_gid);
}

/* Puts the staged file in its place, if r is 0, else or if that fails removes it. */
static int replace(const struct change *c, int dir_fd, const char *staged, const char *name, int r)
{
	if (r == 0 && c->was && S_ISDIR(c->was->mode) && unlinkat(dir_fd, name, AT_REMOVEDIR))
		r = -errno;
	if (r == 0 && renameat(dir_fd, staged, dir_fd, name))
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir_fd, staged, 0);
	return r;
}

static int put_file(const struct applying *a, const struct change *c, int dir_fd, const char *name)
{
	char staged[STAGE_NAME_SIZE];
	path_lookup_stage_name(staged);
	cleanup_close int from = open_copy(a, c->rel);
	struct stat st;
	if (from < 0)
		return from;
	if (fstat(from, &st) || !S_ISREG(st.st_mode))
		return -EBUSY;
	cleanup_close int fd =
		path_lookup_open_plain(dir_fd, staged, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return fd;
	int r = pour(from, fd);
	give(fd, dir_fd, name);
	if (r == 0 && (fchmod(fd, c->mode & 0777) || fsync(fd)))
		r = -errno;
	return replace(c, dir_fd, staged, name, r);
}

static int put_link(const struct applying *a, const struct change *c, int dir_fd, const char *name)
{
	char staged[STAGE_NAME_SIZE], target[PATH_MAX + 1];
	path_lookup_stage_name(staged);
	cleanup_close int link = path_lookup_open_plain(a->guest_fd, c->rel, O_PATH, 0);
	ssize_t n = link < 0 ? -1 : readlinkat(link, "", target, PATH_MAX);
	if (n < 0)
		return link < 0 ? link : -errno;
	target[n] = '\0';
	if (!intake_link_stays(c->rel, target))
		return -EXDEV;
	if (symlinkat(target, dir_fd, staged))
		return -errno;
	return replace(c, dir_fd, staged, name, 0);
}

static int put_dir(const struct change *c, int dir_fd, const char *name)
{
	if (!c->was || S_ISDIR(c->was->mode))
		return mkdirat(dir_fd, name, 0755) && errno != EEXIST ? -errno : 0;
	/* A directory replaces a file. The file is removed only when the directory is ready to be
	 * renamed. */
	char staged[STAGE_NAME_SIZE];
	path_lookup_stage_name(staged);
	if (mkdirat(dir_fd, staged, 0755))
		return -errno;
	int r = unlinkat(dir_fd, name, 0) || renameat(dir_fd, staged, dir_fd, name) ? -errno : 0;
	if (r < 0)
		(void)unlinkat(dir_fd, staged, AT_REMOVEDIR);
	return r;
}

/* Makes parent directories that were not chosen themselves. */
static int make_parents(int base_fd, const char *rel)
{
	char path[PATH_MAX];
	for (const char *slash = strchr(rel, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t n = (size_t)(slash - rel);
		memcpy(path, rel, n);
		path[n] = '\0';
		const char *name;
		cleanup_close int dir = open_parent(base_fd, path, &name);
		if (dir < 0)
			return dir;
		if (mkdirat(dir, name, 0755) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int apply_one(const struct applying *a, const struct change *c)
{
	const char *name;
	int r = c->kind == CHANGE_ADDED ? make_parents(a->r->host_fd, c->rel) : 0;
	if (r < 0)
		return r;
	cleanup_close int dir_fd = open_parent(a->r->host_fd, c->rel, &name);
	if (dir_fd < 0)
		return dir_fd;
	if (c->kind == CHANGE_DELETED)
		return unlinkat(dir_fd, name, S_ISDIR(c->was->mode) ? AT_REMOVEDIR : 0) ? -errno
											: 0;
	if (c->kind == CHANGE_MODE)
		return path_lookup_chmod(dir_fd, name, c->mode & 0777);
	if (S_ISDIR(c->mode))
		return put_dir(c, dir_fd, name);
	return S_ISLNK(c->mode) ? put_link(a, c, dir_fd, name) : put_file(a, c, dir_fd, name);
}

static int refuse(struct applying *a, const char *rel, const char *reason)
{
	json_t *item = json_pack("{s:o, s:s}", "path", json_string_lossy(rel, strlen(rel)),
				 "reason", reason);
	return item && !json_array_append_new(a->refused, item) ? 0 : -ENOMEM;
}

static int consider(struct applying *a, const struct change *c)
{
	if (!is_chosen(a, c->rel))
		return 0;
	if (!a->paths && is_delicate(c->rel))
		return refuse(a, c->rel, "git may execute what is there: name it to take it over");
	const char *reason = check_host(a->r, c);
	if (reason)
		return refuse(a, c->rel, reason);
	int r = apply_one(a, c);
	if (r == -EXDEV)
		return refuse(a, c->rel, "a link that leads out of the project");
	if (r == -ENOTEMPTY)
		return refuse(a, c->rel, "not empty on the host");
	if (r < 0)
		return refuse(a, c->rel, strerrordesc_np(-r));
	json_t *path = json_string_lossy(c->rel, strlen(c->rel));
	return path && !json_array_append_new(a->applied, path) ? 0 : -ENOMEM;
}

/* First deletes, deepest paths first; then creates, directories before their contents. */
static int consider_all(struct applying *a, const struct change_list *l)
{
	int r = 0;
	for (size_t i = l->count; r == 0 && i-- > 0;)
		if (l->items[i].kind == CHANGE_DELETED)
			r = consider(a, &l->items[i]);
	for (size_t i = 0; r == 0 && i < l->count; i++)
		if (l->items[i].kind != CHANGE_DELETED)
			r = consider(a, &l->items[i]);
	return r;
}

int review_apply(struct review *r, const char *const *paths, size_t count, char **ret_json,
		 struct cordon_error **reterr)
{
	cleanup_change_list struct change_list changes = { 0 };
	cleanup_json json_t *applied = json_array(), *refused = json_array(), *all = NULL;
	cleanup_close int guest_fd = -1;
	int e = change_look(r, &guest_fd, &changes, reterr);
	if (e < 0)
		return e;
	struct applying a = { .r = r,
			      .guest_fd = guest_fd,
			      .paths = paths,
			      .path_count = count,
			      .applied = applied,
			      .refused = refused };
	if (applied && refused && consider_all(&a, &changes) == 0)
		all = json_pack("{s:O, s:O}", "applied", applied, "refused", refused);
	*ret_json = all ? json_text(all, NULL) : NULL;
	return *ret_json ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}
