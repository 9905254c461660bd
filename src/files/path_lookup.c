/* files/path_lookup.c - see path_lookup.h. */
#include "files/path_lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/os.h"
#include "base/random.h"

enum { MAX_LINKS = 40, MAX_ATTEMPTS = 16, REST_SIZE = 2 * PATH_MAX };

static const struct {
	const char *name, *path;
	size_t path_len;
} trees[WORKSPACE_TREES] = {
	[WORKSPACE_HOME] = { "user", "/home/user", 10 },
	[WORKSPACE_TMP] = { "tmp", "/tmp", 4 },
	[WORKSPACE_WORK] = { "workspace", "/workspace", 10 },
};

const char *path_lookup_tree_path(int tree)
{
	return trees[tree].path;
}

const char *path_lookup_tree_name(int tree)
{
	return trees[tree].name;
}

void path_lookup_stage_name(char ret[static STAGE_NAME_SIZE])
{
	memcpy(ret, STAGE_PREFIX, sizeof(STAGE_PREFIX) - 1);
	random_hex(ret + sizeof(STAGE_PREFIX) - 1, 20);
}

bool path_lookup_is_stage_name(const char *name)
{
	return str_starts(name, STAGE_PREFIX) && strlen(name) == sizeof(STAGE_PREFIX) - 1 + 20;
}

static int open_how(int dir_fd, const char *rel, int flags, mode_t mode, unsigned how)
{
	return os_open_beneath(dir_fd, rel, flags, mode, how | OS_NO_MOUNTS);
}

int path_lookup_open_plain(int dir_fd, const char *rel, int flags, mode_t mode)
{
	return open_how(dir_fd, *rel ? rel : ".", flags | O_NOFOLLOW, mode, OS_NO_LINKS);
}

int path_lookup_open(const struct path_lookup *p, int flags, mode_t mode)
{
	if (p->dir_fd < 0)
		return flags & (O_CREAT | O_WRONLY | O_RDWR) ? -EROFS : -EISDIR;
	return path_lookup_open_plain(p->dir_fd, p->name, flags | O_NONBLOCK, mode);
}

int path_lookup_stat(const struct path_lookup *p, struct stat *ret)
{
	if (p->dir_fd < 0) {
		*ret = (struct stat){ .st_mode = S_IFDIR | 0555, .st_nlink = 2 };
		return 0;
	}
	return fstatat(p->dir_fd, p->name, ret, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) ? -errno : 0;
}

void path_lookup_done(struct path_lookup *p)
{
	if (!p->is_borrowed && p->dir_fd >= 0)
		(void)close(p->dir_fd);
	*p = (struct path_lookup)PATH_LOOKUP_INIT;
}

/* Finds the tree of an absolute or relative guest path, and the rest, from its text alone. False:
 * no tree, or it takes a walk to tell. */
static bool split_text(const char *path, int *ret_tree, const char **ret_rel)
{
	if (*path != '/') {
		*ret_tree = WORKSPACE_HOME;
		*ret_rel = path;
		return true;
	}
	for (int t = 0; t < WORKSPACE_TREES; t++) {
		size_t n = trees[t].path_len;
		if (strncmp(path, trees[t].path, n) != 0 || (path[n] && path[n] != '/'))
			continue;
		*ret_tree = t;
		*ret_rel = path + n + strspn(path + n, "/");
		return true;
	}
	return false;
}

static bool has_dots(const char *rel)
{
	while (*rel) {
		size_t n = strcspn(rel, "/");
		if (*rel == '.' && (n == 1 || (n == 2 && rel[1] == '.')))
			return true;
		rel += n + (rel[n] == '/');
	}
	return false;
}

/* Opens the directory part of rel, its first `len` bytes. 0, -errno, or 1: the path has links,
 * which the kernel must not follow for us, or directories that must be created. */
static int open_parent(struct path_lookup *p, const char *rel, size_t len, unsigned flags)
{
	char parent[PATH_MAX];
	memcpy(parent, rel, len);
	parent[len] = '\0';
	int fd = open_how(p->dir_fd, parent, O_PATH | O_DIRECTORY, 0, 0);
	if (fd == -EXDEV || fd == -ELOOP || fd == -EAGAIN)
		return 1;
	if (fd == -ENOENT && flags & PATH_LOOKUP_PARENTS)
		return 1;
	if (fd < 0)
		return fd;
	p->dir_fd = fd;
	p->is_borrowed = false;
	return 0;
}

/* The common case with one openat2. 0, -errno, or 1: the path must be walked. */
static int find_at_once(const struct workspace *ws, const char *path, unsigned flags,
			struct path_lookup *ret)
{
	const char *rel;
	int tree;
	if (!split_text(path, &tree, &rel) || has_dots(rel) || ws->read_only_mounts.count)
		return 1;

	size_t len = strlen(rel);
	while (len && rel[len - 1] == '/')
		len--;
	size_t start = len;
	while (start && rel[start - 1] != '/')
		start--;
	if (len - start > NAME_MAX)
		return -ENAMETOOLONG;

	struct path_lookup p = { .tree = tree, .dir_fd = ws->tree_fd[tree], .is_borrowed = true };
	memcpy(p.name, rel + start, len - start);
	int r = start ? open_parent(&p, rel, start, flags) : 0;
	char link[1];
	if (r == 0 && flags & PATH_LOOKUP_FOLLOW && *p.name &&
	    readlinkat(p.dir_fd, p.name, link, 1) >= 0)
		r = 1;
	if (r == 0)
		*ret = p;
	else
		path_lookup_done(&p);
	return r;
}

/* A walk. `at` is the path so far, without links; `rest` remains. No descriptor is kept between
 * steps: each step opens `at` again with links forbidden. So if a directory becomes a link
 * meanwhile, that is ELOOP, and the walk starts over. */
struct walk {
	const struct workspace *ws;
	unsigned flags;
	int tree;
	int links;
	char at[PATH_MAX];
	char rest[REST_SIZE];
};

static int walk_put_rest(struct walk *w, const char *text, size_t len, const char *after)
{
	char rest[REST_SIZE];
	size_t after_len = strlen(after);
	if (len + 1 + after_len + 1 > sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(rest, text, len);
	rest[len] = '/';
	memcpy(rest + len + 1, after, after_len + 1);
	memcpy(w->rest, rest, len + 1 + after_len + 1);
	if (*w->rest == '/') {
		w->tree = LAYOUT_ROOT;
		*w->at = '\0';
	}
	return 0;
}

static void walk_up(struct walk *w)
{
	char *slash = strrchr(w->at, '/');
	if (*w->at)
		*(slash ? slash : w->at) = '\0';
	else
		w->tree = w->tree == WORKSPACE_HOME ? LAYOUT_HOMES : LAYOUT_ROOT;
}

/* Steps from "/" or "/home" to `name`: only the directories that lead to the trees exist. */
static int walk_layout(struct walk *w, const char *name)
{
	if (w->tree == LAYOUT_ROOT && str_eq(name, "home"))
		w->tree = LAYOUT_HOMES;
	else if (w->tree == LAYOUT_HOMES && str_eq(name, "user"))
		w->tree = WORKSPACE_HOME;
	else if (w->tree == LAYOUT_ROOT && str_eq(name, "tmp"))
		w->tree = WORKSPACE_TMP;
	else if (w->tree == LAYOUT_ROOT && str_eq(name, "workspace"))
		w->tree = WORKSPACE_WORK;
	else
		return w->flags & PATH_LOOKUP_WRITE ? -PATH_LOOKUP_OUTSIDE_WRITE
						    : -PATH_LOOKUP_OUTSIDE;
	return 0;
}

static bool is_beneath(const struct strlist *mounts, int tree, const char *at, const char *name)
{
	char full[PATH_MAX + NAME_MAX + 16];
	int n = snprintf(full, sizeof(full), "%s/%s%s%s", trees[tree].path, at, *at ? "/" : "",
			 name);
	if (n < 0 || (size_t)n >= sizeof(full))
		return true;
	for (size_t i = 0; i < mounts->count; i++) {
		size_t len = strlen(mounts->items[i]);
		if (!strncmp(full, mounts->items[i], len) && (!full[len] || full[len] == '/'))
			return true;
	}
	return false;
}

static int walk_mkdir(struct walk *w, const char *name)
{
	if (is_beneath(&w->ws->read_only_mounts, w->tree, w->at, name))
		return -PATH_LOOKUP_READ_ONLY_MOUNT;
	cleanup_close int dir =
		path_lookup_open_plain(w->ws->tree_fd[w->tree], w->at, O_PATH | O_DIRECTORY, 0);
	if (dir < 0)
		return dir;
	if (mkdirat(dir, name, 0755) && errno != EEXIST)
		return -errno;
	return 0;
}

/* Steps down into `name`, which is not the last one. */
static int walk_down(struct walk *w, const char *name)
{
	char next[PATH_MAX];
	int len = snprintf(next, sizeof(next), "%s%s%s", w->at, *w->at ? "/" : "", name);
	if (len < 0 || (size_t)len >= sizeof(next))
		return -ENAMETOOLONG;

	int tree_fd = w->ws->tree_fd[w->tree];
	cleanup_close int fd = path_lookup_open_plain(tree_fd, next, O_PATH, 0);
	if (fd == -ENOENT && w->flags & PATH_LOOKUP_PARENTS) {
		int r = walk_mkdir(w, name);
		if (r < 0)
			return r;
		fd = path_lookup_open_plain(tree_fd, next, O_PATH, 0);
	}
	if (fd < 0)
		return fd;

	struct stat st;
	if (fstat(fd, &st))
		return -errno;
	if (S_ISDIR(st.st_mode)) {
		memcpy(w->at, next, (size_t)len + 1);
		return 0;
	}
	if (!S_ISLNK(st.st_mode))
		return -ENOTDIR;
	if (++w->links > MAX_LINKS)
		return -ELOOP;
	char target[PATH_MAX];
	ssize_t n = readlinkat(fd, "", target, sizeof(target));
	if (n < 0)
		return -errno;
	return walk_put_rest(w, target, (size_t)n, w->rest);
}

/* The last step: `name` in `at`. Returns 1 if it is a link to follow. */
static int walk_end(struct walk *w, const char *name, struct path_lookup *ret)
{
	struct path_lookup p = { .tree = w->tree, .dir_fd = -1, .is_borrowed = true };
	if (w->tree >= WORKSPACE_TREES) {
		*ret = p;
		return 0;
	}
	if (w->flags & PATH_LOOKUP_WRITE &&
	    is_beneath(&w->ws->read_only_mounts, w->tree, w->at, name))
		return -PATH_LOOKUP_READ_ONLY_MOUNT;
	p.dir_fd = path_lookup_open_plain(w->ws->tree_fd[w->tree], w->at, O_PATH | O_DIRECTORY, 0);
	if (p.dir_fd < 0)
		return p.dir_fd;
	p.is_borrowed = false;
	memcpy(p.name, name, strlen(name) + 1);

	char target[PATH_MAX];
	ssize_t n = -1;
	if (*name && w->flags & PATH_LOOKUP_FOLLOW)
		n = readlinkat(p.dir_fd, name, target, sizeof(target));
	if (n < 0) {
		*ret = p;
		return 0;
	}
	path_lookup_done(&p);
	if (++w->links > MAX_LINKS)
		return -ELOOP;
	int r = walk_put_rest(w, target, (size_t)n, "");
	return r < 0 ? r : 1;
}

/* Takes the next name off the rest. Its length, 0 at the end, or -errno. */
static int walk_next(struct walk *w, char name[static NAME_MAX + 1])
{
	char *s = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(s, "/");
	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, s, n);
	name[n] = '\0';
	s += n + strspn(s + n, "/");
	memmove(w->rest, s, strlen(s) + 1);
	return (int)n;
}

static int walk_path(struct walk *w, struct path_lookup *ret)
{
	for (;;) {
		char name[NAME_MAX + 1];
		int r = walk_next(w, name);
		if (r < 0)
			return r;
		if (r == 0)
			return walk_end(w, "", ret);

		if (str_eq(name, ".")) {
			continue;
		} else if (str_eq(name, "..")) {
			walk_up(w);
		} else if (w->tree >= WORKSPACE_TREES) {
			r = walk_layout(w, name);
		} else if (*w->rest) {
			r = walk_down(w, name);
		} else {
			r = walk_end(w, name, ret);
			if (r == 0)
				return 0;
		}
		if (r < 0)
			return r;
	}
}

int path_lookup_find(const struct workspace *ws, const char *path, unsigned flags,
		     struct path_lookup *ret)
{
	size_t len = strlen(path);
	if (!len)
		return -ENOENT;
	if (len >= PATH_MAX)
		return -ENAMETOOLONG;
	int r = find_at_once(ws, path, flags, ret);
	for (int i = 0; r > 0 && i < MAX_ATTEMPTS; i++) {
		struct walk w = { .ws = ws, .flags = flags, .tree = WORKSPACE_HOME };
		memcpy(w.rest, path, len + 1);
		if (*path == '/')
			w.tree = LAYOUT_ROOT;
		r = walk_path(&w, ret);
		/* A directory became a link meanwhile. A real loop exceeds MAX_LINKS. */
		if ((r == -ELOOP && w.links <= MAX_LINKS) || r == -EAGAIN)
			r = i + 1 < MAX_ATTEMPTS ? 1 : r;
	}
	return r;
}

int path_lookup_enter(const struct workspace *ws, struct owner *o, struct cordon_error **reterr)
{
	if (ws->is_offloaded)
		return err_set(reterr, CORDON_STATE,
			       "Sandbox is offloaded \xe2\x80\x94 call rehydrate() first");
	return path_lookup_enter_any(ws, o, reterr);
}

int path_lookup_enter_any(const struct workspace *ws, struct owner *o, struct cordon_error **reterr)
{
	int r = owner_enter(o, ws->opts.owner_uid, ws->opts.owner_gid);
	if (r < 0)
		return err_errno(reterr, -r, "work as user %u", (unsigned)ws->opts.owner_uid);
	return 0;
}

static enum cordon_code code_of(int os_errno)
{
	switch (os_errno) {
	case EROFS:
		return CORDON_DENIED;
	case ENOTEMPTY:
	case EBUSY:
	case EAGAIN:
	case ETXTBSY:
		return CORDON_STATE;
	default:
		return CORDON_OS;
	}
}

/* The code can read /etc and /usr, so "no such file" alone would be confusing. */
static int fail_outside(const char *path, bool is_write, struct cordon_error **reterr)
{
	return err_set(reterr, is_write ? CORDON_DENIED : CORDON_NOT_FOUND,
		       "%s: outside the workspace: '%s'; the files API reaches only /home/user, "
		       "/tmp and /workspace",
		       is_write ? "EROFS" : "ENOENT", path);
}

int path_lookup_fail(const struct workspace *ws, const char *path, int r,
		     struct cordon_error **reterr)
{
	if (r >= 0)
		return r;
	int e = -r;
	if (e == ENOSPC) {
		struct statvfs fs;
		uint64_t max = ws->opts.max_bytes;
		bool is_counted = ws->is_tmpfs && fstatvfs(ws->root_fd, &fs) == 0;
		if (is_counted && fs.f_files && !fs.f_ffree)
			return err_errno(reterr, e,
					 "ENOSPC: file count limit exceeded: '%s'; the policy's "
					 "file_count is the limit",
					 path);
		if (is_counted && !max)
			max = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
		return err_errno(reterr, e,
				 "ENOSPC: no space left on device (limit: %llu bytes): '%s'; "
				 "the policy's fs_bytes is the limit",
				 (unsigned long long)max, path);
	}
	if (e == PATH_LOOKUP_OUTSIDE || e == PATH_LOOKUP_OUTSIDE_WRITE)
		return fail_outside(path, e == PATH_LOOKUP_OUTSIDE_WRITE, reterr);
	const char *name = strerrorname_np(e);
	if (e == PATH_LOOKUP_READ_ONLY_MOUNT)
		return err_set(reterr, CORDON_DENIED, "EROFS: read-only mount: '%s'", path);
	if (code_of(e) != CORDON_OS)
		return err_set(reterr, code_of(e), "%s: %s: '%s'", name ? name : "EIO",
			       strerrordesc_np(e), path);
	return err_errno(reterr, e, "%s: %s: '%s'", name ? name : "EIO", strerrordesc_np(e), path);
}

/* Via /proc the descriptor names this inode, so the mode changes on the file that was checked. */
static int chmod_of(int path_fd, mode_t mode)
{
	char self[32];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	return chmod(self, mode & 07777) ? -errno : 0;
}

int path_lookup_chmod(int dir_fd, const char *name, mode_t mode)
{
	cleanup_close int fd = path_lookup_open_plain(dir_fd, name, O_PATH, 0);
	struct stat st;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return -errno;
	return S_ISLNK(st.st_mode) ? -EOPNOTSUPP : chmod_of(fd, mode);
}

int path_lookup_open_forced(int dir_fd, const char *name, int flags)
{
	int fd = path_lookup_open_plain(dir_fd, name, flags | O_NONBLOCK, 0);
	if (fd != -EACCES)
		return fd;

	cleanup_close int path_fd = path_lookup_open_plain(dir_fd, name, O_PATH, 0);
	struct stat st;
	if (path_fd < 0 || fstat(path_fd, &st))
		return -EACCES;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return -EACCES;
	int r = chmod_of(path_fd, st.st_mode | (S_ISDIR(st.st_mode) ? 0700 : 0600));
	if (r < 0)
		return r;
	char self[32];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, (flags & ~O_NOFOLLOW) | O_NONBLOCK | O_CLOEXEC);
	r = fd < 0 ? -errno : fd;
	(void)chmod_of(path_fd, st.st_mode);
	return r;
}
