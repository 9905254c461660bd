/* files/workspace.c - see workspace.h. */
#include "files/workspace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/os.h"
#include "files/listing.h"
#include "files/path_lookup.h"

enum { MAX_SWAPS = 16, DEFAULT_READ_MAX = 1 << 30 };

/* Starts the body of every call: enters the owner's ids, or returns the error. */
#define AS_OWNER(ws, reterr)                                                                       \
	cleanup_owner struct owner owner_ = { 0 };                                                 \
	do {                                                                                       \
		int r_ = path_lookup_enter(ws, &owner_, reterr);                                   \
		if (r_ < 0)                                                                        \
			return r_;                                                                 \
	} while (0)

static void info_of(const struct stat *st, struct cordon_file_info *ret)
{
	*ret = (struct cordon_file_info){
		.type = S_ISREG(st->st_mode)   ? CORDON_FILE
			: S_ISDIR(st->st_mode) ? CORDON_DIRECTORY
			: S_ISLNK(st->st_mode) ? CORDON_SYMLINK
					       : CORDON_OTHER,
		.size = (uint64_t)st->st_size,
		.mode = st->st_mode & 07777,
		.mtime_ns = st->st_mtim.tv_sec * 1000000000LL + st->st_mtim.tv_nsec,
	};
}

static int open_trees(struct workspace *ws)
{
	for (int t = 0; t < WORKSPACE_TREES; t++) {
		const char *name = path_lookup_tree_name(t);
		int fd = path_lookup_open_plain(ws->root_fd, name, O_PATH | O_DIRECTORY, 0);
		if (fd == -ENOENT) {
			if (mkdirat(ws->root_fd, name, 0755) && errno != EEXIST)
				return -errno;
			fd = path_lookup_open_plain(ws->root_fd, name, O_PATH | O_DIRECTORY, 0);
		}
		if (fd < 0)
			return fd;
		ws->tree_fd[t] = fd;
	}
	bool can_stage = faccessat(ws->root_fd, ".", W_OK | X_OK, AT_EACCESS) == 0;
	ws->stage_fd = can_stage ? ws->root_fd : ws->tree_fd[WORKSPACE_HOME];
	return 0;
}

int workspace_open(const struct workspace_options *opts, struct workspace **ret,
		   struct cordon_error **reterr)
{
	cleanup_workspace struct workspace *ws = mem_alloc(sizeof(*ws));
	if (!ws)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	ws->refs = 1;
	ws->opts = *opts;
	ws->opts.root_fd = -1;
	ws->root_fd = ws->stage_fd = -1;
	for (int t = 0; t < WORKSPACE_TREES; t++)
		ws->tree_fd[t] = -1;
	(void)pthread_mutex_init(&ws->lock, NULL);

	AS_OWNER(ws, reterr);
	ws->root_fd = fcntl(opts->root_fd, F_DUPFD_CLOEXEC, 3);
	int r = ws->root_fd < 0 ? -errno : os_is_in_memory(ws->root_fd);
	if (r < 0)
		return err_errno(reterr, -r, "open the workspace");
	ws->is_tmpfs = r;
	r = open_trees(ws);
	if (r < 0)
		return err_errno(reterr, -r, "open the trees of the workspace");
	*ret = TAKE_PTR(ws);
	return 0;
}

bool workspace_is_offloaded(const struct workspace *ws)
{
	return ws->is_offloaded;
}

struct workspace *workspace_ref(struct workspace *ws)
{
	if (ws)
		ws->refs++;
	return ws;
}

struct workspace *workspace_close(struct workspace *ws)
{
	if (!ws || --ws->refs > 0)
		return NULL;
	for (int t = 0; t < WORKSPACE_TREES; t++)
		close_fdp(&ws->tree_fd[t]);
	close_fdp(&ws->root_fd);
	strlist_done(&ws->mounts);
	strlist_done(&ws->read_only_mounts);
	(void)pthread_mutex_destroy(&ws->lock);
	free(ws);
	return NULL;
}

int workspace_get_usage(struct workspace *ws, struct workspace_usage *ret,
			struct cordon_error **reterr)
{
	AS_OWNER(ws, reterr);
	int r = usage_measure(ws, ret);
	return r < 0 ? err_errno(reterr, -r, "measure the workspace") : 0;
}

/* Opens a regular file. If a link appears between lookup and open, it looks again. */
static int open_regular(struct workspace *ws, const char *path, int flags, struct stat *ret_st)
{
	unsigned write = flags & (O_WRONLY | O_RDWR) ? PATH_LOOKUP_WRITE : 0;
	for (int i = 0;; i++) {
		cleanup_path_lookup struct path_lookup p = PATH_LOOKUP_INIT;
		int r = path_lookup_find(ws, path, PATH_LOOKUP_FOLLOW | write, &p);
		if (r < 0)
			return r;
		cleanup_close int fd = path_lookup_open(&p, flags, 0644);
		if (fd == -ELOOP && i < MAX_SWAPS)
			continue;
		if (fd < 0)
			return fd == -ENXIO ? -EINVAL : fd;
		if (fstat(fd, ret_st))
			return -errno;
		if (S_ISDIR(ret_st->st_mode))
			return -EISDIR;
		if (!S_ISREG(ret_st->st_mode))
			return -EINVAL;
		if (write && !(ret_st->st_mode & 0200))
			return -EACCES;
		return TAKE_FD(fd);
	}
}

int workspace_read(struct workspace *ws, const char *path, size_t max_bytes, char **ret,
		   size_t *ret_len, struct cordon_error **reterr)
{
	AS_OWNER(ws, reterr);
	size_t max = max_bytes            ? max_bytes
		     : ws->opts.max_bytes ? ws->opts.max_bytes
					  : DEFAULT_READ_MAX;
	struct stat st;
	cleanup_close int fd = open_regular(ws, path, O_RDONLY, &st);
	if (fd < 0)
		return path_lookup_fail(ws, path, fd, reterr);
	if ((uint64_t)st.st_size > max)
		return err_set(reterr, CORDON_LIMIT, "EFBIG: %lld bytes, more than %zu: '%s'",
			       (long long)st.st_size, max, path);

	/* The guest may still be writing: reads what is there now, at most the size seen above. */
	size_t len = (size_t)st.st_size;
	cleanup_free char *bytes = malloc(len + 1);
	if (!bytes)
		return err_set(reterr, CORDON_NOMEM, "out of memory for %zu bytes of '%s'", len,
			       path);
	ssize_t n = file_read_full(fd, bytes, len);
	if (n < 0)
		return path_lookup_fail(ws, path, (int)n, reterr);
	bytes[n] = '\0';
	*ret = TAKE_PTR(bytes);
	*ret_len = (size_t)n;
	return 0;
}

int workspace_read_at(struct workspace *ws, const char *path, uint64_t offset, void *bytes,
		      size_t len, size_t *ret_len, struct cordon_error **reterr)
{
	AS_OWNER(ws, reterr);
	struct stat st;
	cleanup_close int fd = open_regular(ws, path, O_RDONLY, &st);
	if (fd < 0)
		return path_lookup_fail(ws, path, fd, reterr);
	size_t done = 0;
	while (done < len && offset + done <= INT64_MAX) {
		ssize_t n = pread(fd, (char *)bytes + done, len - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return path_lookup_fail(ws, path, -errno, reterr);
		if (n == 0)
			break;
		done += (size_t)n;
	}
	*ret_len = done;
	return 0;
}

/* At the quota there is no room for a second copy, but the bytes may fit in place of the old ones.
 * Space is reserved first, so a failure leaves the old content. */
static int write_in_place(const struct path_lookup *p, const void *bytes, size_t len)
{
	cleanup_close int fd = path_lookup_open(p, O_WRONLY, 0);
	if (fd < 0)
		return fd;
	if (len && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)len))
		return -errno;
	int r = file_write_all(fd, bytes, len);
	if (r == 0 && ftruncate(fd, (off_t)len))
		r = -errno;
	return r;
}

static int write_staged(const struct workspace *ws, const struct path_lookup *p, mode_t mode,
			const void *bytes, size_t len)
{
	char staged[STAGE_NAME_SIZE];
	path_lookup_stage_name(staged);
	cleanup_close int fd = openat(ws->stage_fd, staged,
				      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int r = file_write_all(fd, bytes, len);
	if (r == 0 && fchmod(fd, mode & 07777))
		r = -errno;
	if (r == 0 && renameat(ws->stage_fd, staged, p->dir_fd, p->name))
		r = -errno;
	if (r < 0)
		(void)unlinkat(ws->stage_fd, staged, 0);
	return r;
}

/* Whether a file may be written here. 0: it is new, 1: it exists, or -errno. */
static int may_replace(const struct path_lookup *p, struct stat *ret_st)
{
	if (!*p->name)
		return -EISDIR;
	int r = path_lookup_stat(p, ret_st);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (S_ISREG(ret_st->st_mode))
		return ret_st->st_mode & 0200 ? 1 : -EACCES;
	return S_ISLNK(ret_st->st_mode) ? -ELOOP : S_ISDIR(ret_st->st_mode) ? -EISDIR : -EINVAL;
}

static int write_at(struct workspace *ws, const struct path_lookup *p, const void *bytes,
		    size_t len)
{
	struct stat st = { .st_mode = 0644 };
	int is_there = may_replace(p, &st);
	if (is_there < 0)
		return is_there;
	size_t had = is_there ? (size_t)st.st_size : 0;
	int r = usage_charge(ws, len > had ? len - had : 0, !is_there);
	if (r == 0)
		r = write_staged(ws, p, is_there ? st.st_mode : 0644, bytes, len);
	if (r == -ENOSPC && is_there && ws->is_tmpfs)
		r = write_in_place(p, bytes, len);
	return r;
}

int workspace_write(struct workspace *ws, const char *path, const void *bytes, size_t len,
		    struct cordon_error **reterr)
{
	AS_OWNER(ws, reterr);
	int r = -ELOOP;
	for (int i = 0; r == -ELOOP && i < MAX_SWAPS; i++) {
		cleanup_path_lookup struct path_lookup p = PATH_LOOKUP_INIT;
		r = path_lookup_find(
			ws, path, PATH_LOOKUP_FOLLOW | PATH_LOOKUP_PARENTS | PATH_LOOKUP_WRITE, &p);
		if (r < 0)
			break;
		r = p.dir_fd < 0 ? -EISDIR : write_at(ws, &p, bytes, len);
	}
	return path_lookup_fail(ws, path, r, reterr);
}

int workspace_append(struct workspace *ws, const char *path, const void *bytes, size_t len,
		     struct cordon_error **reterr)
{
	AS_OWNER(ws, reterr);
	struct stat st = { 0 };
	int r = usage_charge(ws, len, 1);
	cleanup_close int fd = -1;
	if (r == 0)
		fd = r = open_regular(ws, path, O_WRONLY | O_APPEND | O_CREAT, &st);
	if (r >= 0 && len && fallocate(fd, FALLOC_FL_KEEP_SIZE, st.st_size, (off_t)len) &&
	    errno != EOPNOTSUPP)
		r = -errno;
	if (r >= 0)
		r = file_write_all(fd, bytes, len);
	return path_lookup_fail(ws, path, r, reterr);
}

int workspace_stat(struct workspace *ws, const char *path, struct cordon_file_info *ret,
		   struct cordon_error **reterr)
{
	AS_OWNER(ws, reterr);
	cleanup_path_lookup struct path_lookup p = PATH_LOOKUP_INIT;
	struct stat st;
	int r = path_lookup_find(ws, path, 0, &p);
	if (r == 0)
		r = path_lookup_stat(&p, &st);
	if (r == 0)
		info_of(&st, ret);
	return path_lookup_fail(ws, path, r, reterr);
}

int workspace_readlink(struct workspace *ws, const char *path, char **ret,
		       struct cordon_error **reterr)
{
	AS_OWNER(ws, reterr);
	cleanup_path_lookup struct path_lookup p = PATH_LOOKUP_INIT;
	char target[PATH_MAX];
	int r = path_lookup_find(ws, path, 0, &p);
	if (r == 0 && !*p.name)
		r = -EINVAL;
	ssize_t n = 0;
	if (r == 0) {
		n = readlinkat(p.dir_fd, p.name, target, sizeof(target));
		r = n < 0 ? -errno : 0;
	}
	if (r < 0)
		return path_lookup_fail(ws, path, r, reterr);
	*ret = str_ndup(target, (size_t)n);
	return *ret ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int list_layout(int which, cordon_file_list_fn fn, void *arg)
{
	static const char *const root[] = { "home", "tmp", "workspace", NULL };
	static const char *const homes[] = { "user", NULL };
	const char *const *names = which == LAYOUT_ROOT ? root : homes;
	struct cordon_file_info info = { .type = CORDON_DIRECTORY, .mode = 0755 };
	int r = 0;
	for (size_t i = 0; names[i] && r == 0; i++)
		r = fn(names[i], &info, arg);
	return r;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* On some kernels a tmpfs directory whose entries are renamed all the time never ends
 * (simple_offset directories of Linux 6.6 to 6.10). So what is left out counts, too. */
enum { READS_MAX = 2 * LISTING_MAX_ENTRIES };

static int read_names(int dir_fd, struct strlist *ret)
{
	DIR *dir = fdopendir(dir_fd);
	if (!dir)
		return -errno;
	int r = 0;
	size_t seen = 0;
	while (r == 0) {
		errno = 0;
		const struct dirent *d = readdir(dir);
		if (!d) {
			r = -errno;
			break;
		}
		if (++seen > READS_MAX)
			r = -E2BIG;
		else if (str_eq(d->d_name, ".") || str_eq(d->d_name, "..") ||
			 path_lookup_is_stage_name(d->d_name))
			continue;
		else if (ret->count >= LISTING_MAX_ENTRIES || strlist_add(ret, d->d_name) < 0)
			r = -ENOMEM;
	}
	(void)closedir(dir);
	if (r == 0 && ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), compare_names);
	return r;
}

int workspace_list(struct workspace *ws, const char *path, cordon_file_list_fn fn, void *arg,
		   struct cordon_error **reterr)
{
	cleanup_close int dir = -1;
	cleanup_strlist struct strlist names = { 0 };
	{
		AS_OWNER(ws, reterr);
		int r = -ELOOP;
		for (int i = 0; r == -ELOOP && i < MAX_SWAPS; i++) {
			cleanup_path_lookup struct path_lookup p = PATH_LOOKUP_INIT;
			r = path_lookup_find(ws, path, PATH_LOOKUP_FOLLOW, &p);
			if (r < 0)
				break;
			if (p.dir_fd < 0)
				return list_layout(p.tree, fn, arg);
			dir = r = path_lookup_open(&p, O_RDONLY | O_DIRECTORY, 0);
		}
		int copy = r >= 0 ? fcntl(dir, F_DUPFD_CLOEXEC, 3) : -1;
		if (r >= 0)
			r = copy < 0 ? -errno : read_names(copy, &names);
		if (r < 0)
			return path_lookup_fail(ws, path, r, reterr);
	}
	/* The callback belongs to the caller, so it runs under the caller's ids. */
	for (size_t i = 0; i < names.count; i++) {
		struct stat st;
		struct cordon_file_info info;
		if (fstatat(dir, names.items[i], &st, AT_SYMLINK_NOFOLLOW))
			continue; /* removed meanwhile */
		info_of(&st, &info);
		int r = fn(names.items[i], &info, arg);
		if (r != 0)
			return r;
	}
	return 0;
}

int workspace_mkdir(struct workspace *ws, const char *path, bool parents,
		    struct cordon_error **reterr)
{
	AS_OWNER(ws, reterr);
	cleanup_path_lookup struct path_lookup p = PATH_LOOKUP_INIT;
	unsigned flags =
		PATH_LOOKUP_WRITE | (parents ? PATH_LOOKUP_PARENTS | PATH_LOOKUP_FOLLOW : 0);
	int r = path_lookup_find(ws, path, flags, &p);
	if (r == 0 && !*p.name)
		r = -EEXIST;
	if (r == 0)
		r = usage_charge(ws, 0, 1);
	if (r == 0 && mkdirat(p.dir_fd, p.name, 0755))
		r = -errno;
	struct stat st;
	if (r == -EEXIST && parents && (!*p.name || !path_lookup_stat(&p, &st)) &&
	    (!*p.name || S_ISDIR(st.st_mode)))
		r = 0;
	return path_lookup_fail(ws, path, r, reterr);
}

int workspace_symlink(struct workspace *ws, const char *target, const char *path,
		      struct cordon_error **reterr)
{
	AS_OWNER(ws, reterr);
	cleanup_path_lookup struct path_lookup p = PATH_LOOKUP_INIT;
	int r = path_lookup_find(ws, path, PATH_LOOKUP_WRITE, &p);
	if (r == 0 && !*p.name)
		r = -EEXIST;
	if (r == 0)
		r = usage_charge(ws, 0, 1);
	if (r == 0 && symlinkat(target, p.dir_fd, p.name))
		r = -errno;
	return path_lookup_fail(ws, path, r, reterr);
}

int workspace_chmod(struct workspace *ws, const char *path, uint32_t mode,
		    struct cordon_error **reterr)
{
	AS_OWNER(ws, reterr);
	cleanup_path_lookup struct path_lookup p = PATH_LOOKUP_INIT;
	int r = path_lookup_find(ws, path, PATH_LOOKUP_WRITE | PATH_LOOKUP_FOLLOW, &p);
	if (r == 0 && p.dir_fd < 0)
		r = -EROFS;
	/* Without set-id bits: only those would have an effect outside the sandbox. */
	if (r == 0)
		r = path_lookup_chmod(p.dir_fd, p.name, mode & 01777);
	return path_lookup_fail(ws, path, r, reterr);
}

int workspace_move(struct workspace *ws, const char *from, const char *to,
		   struct cordon_error **reterr)
{
	AS_OWNER(ws, reterr);
	cleanup_path_lookup struct path_lookup p = PATH_LOOKUP_INIT, q = PATH_LOOKUP_INIT;
	int r = path_lookup_find(ws, from, PATH_LOOKUP_WRITE, &p);
	if (r == 0 && !*p.name)
		r = -EBUSY;
	if (r < 0)
		return path_lookup_fail(ws, from, r, reterr);
	r = path_lookup_find(ws, to, PATH_LOOKUP_WRITE, &q);
	if (r == 0 && !*q.name)
		r = -EBUSY;
	if (r == 0 && renameat(p.dir_fd, p.name, q.dir_fd, q.name))
		r = -errno;
	struct stat st;
	if (r == -ENOENT && path_lookup_stat(&p, &st))
		return path_lookup_fail(ws, from, r, reterr);
	return path_lookup_fail(ws, to, r, reterr);
}

int workspace_remove(struct workspace *ws, const char *path, bool recursive,
		     struct cordon_error **reterr)
{
	AS_OWNER(ws, reterr);
	cleanup_path_lookup struct path_lookup p = PATH_LOOKUP_INIT;
	struct stat st;
	int r = path_lookup_find(ws, path, PATH_LOOKUP_WRITE, &p);
	if (r == 0 && !*p.name)
		r = -EBUSY;
	if (r == 0)
		r = path_lookup_stat(&p, &st);
	if (r == 0 && recursive)
		r = removal_at(ws, p.dir_fd, p.name);
	else if (r == 0 && unlinkat(p.dir_fd, p.name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0))
		r = -errno;
	return path_lookup_fail(ws, path, r, reterr);
}

static bool overlaps(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b), less = n < m ? n : m;
	return !strncmp(a, b, less) && (n == m || (n < m ? b : a)[less] == '/');
}

int workspace_add_mount(struct workspace *ws, const char *path, bool read_only,
			struct cordon_error **reterr)
{
	AS_OWNER(ws, reterr);
	cleanup_path_lookup struct path_lookup p = PATH_LOOKUP_INIT;
	int r = path_lookup_find(ws, path, 0, &p);
	if (r < 0)
		return path_lookup_fail(ws, path, r, reterr);
	if (*path != '/' || strstr(path, "/.") || strstr(path, "//") || str_ends(path, "/") ||
	    !*p.name)
		return err_set(reterr, CORDON_INVALID,
			       "a mount needs a plain absolute path inside the workspace: '%s'",
			       path);
	for (size_t i = 0; i < ws->mounts.count; i++)
		if (overlaps(ws->mounts.items[i], path))
			return err_set(reterr, CORDON_EXISTS, "'%s' overlaps the mount '%s'", path,
				       ws->mounts.items[i]);
	if (strlist_add(&ws->mounts, path) < 0 ||
	    (read_only && strlist_add(&ws->read_only_mounts, path) < 0))
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	return 0;
}
