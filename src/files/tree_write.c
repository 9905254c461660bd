/* files/tree_write.c - see tree_write.h. */
#include "files/tree_write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

void tree_write_init(struct tree_write *w, struct workspace *ws)
{
	*w = (struct tree_write){ .ws = ws, .base_fd = -1, .parent_fd = -1 };
}

void tree_write_done(struct tree_write *w)
{
	close_fdp(&w->parent_fd);
	for (size_t i = 0; i < w->dir_count; i++)
		free(w->dirs[i].rel);
	free(w->dirs);
	w->dirs = NULL;
	w->dir_count = 0;
}

static const char *last_name(const char *rel)
{
	const char *slash = strrchr(rel, '/');
	return slash ? slash + 1 : rel;
}

/* Creates the missing directories of the path. */
static int make_parents(int base_fd, const char *path)
{
	char done[PATH_MAX] = "";
	const char *at = path;
	while (*at) {
		size_t n = strcspn(at, "/");
		char name[NAME_MAX + 1];
		memcpy(name, at, n);
		name[n] = '\0';
		cleanup_close int fd =
			path_lookup_open_plain(base_fd, done, O_PATH | O_DIRECTORY, 0);
		if (fd < 0)
			return fd;
		if (mkdirat(fd, name, 0755) && errno != EEXIST)
			return -errno;
		at += n + (at[n] == '/');
		size_t len = (size_t)(at - path);
		memcpy(done, path, len);
		done[len] = '\0';
	}
	return 0;
}

/* Opens the directory of rel, creating missing ones. w owns the descriptor. */
static int enter_parent(struct tree_write *w, int base_fd, const char *rel)
{
	char parent[PATH_MAX];
	size_t n = (size_t)(last_name(rel) - rel);
	memcpy(parent, rel, n);
	parent[n ? n - 1 : 0] = '\0';
	if (w->parent_fd >= 0 && w->base_fd == base_fd && !strcmp(w->parent, parent))
		return 0;
	close_fdp(&w->parent_fd);
	int fd = path_lookup_open_plain(base_fd, parent, O_PATH | O_DIRECTORY, 0);
	if (fd == -ENOENT) {
		int r = make_parents(base_fd, parent);
		if (r < 0)
			return r;
		fd = path_lookup_open_plain(base_fd, parent, O_PATH | O_DIRECTORY, 0);
	}
	if (fd < 0)
		return fd;
	w->parent_fd = fd;
	w->base_fd = base_fd;
	memcpy(w->parent, parent, n + 1);
	return 0;
}

static int remember_dir(struct tree_write *w, int base_fd, const char *rel, uint32_t mode,
			int64_t mtime_ns)
{
	if (w->dir_count == w->dir_cap) {
		size_t cap = w->dir_cap ? w->dir_cap * 2 : 32;
		void *q = mem_grow(w->dirs, cap, sizeof(*w->dirs));
		if (!q)
			return -ENOMEM;
		w->dirs = q;
		w->dir_cap = cap;
	}
	char *copy = str_dup(rel);
	if (!copy)
		return -ENOMEM;
	w->dirs[w->dir_count++] = (struct tree_write_dir){ base_fd, copy, mode & 01777, mtime_ns };
	return 0;
}

/* Without a workspace there is no stage, and we must not remove whole directories. */
static int remove_name(struct tree_write *w, const char *name)
{
	if (w->ws)
		return removal_at(w->ws, w->parent_fd, name);
	return unlinkat(w->parent_fd, name, 0) ? -errno : 0;
}

int tree_write_directory(struct tree_write *w, int base_fd, const char *rel, uint32_t mode,
			 int64_t mtime_ns)
{
	if (!*rel)
		return remember_dir(w, base_fd, rel, mode, mtime_ns);
	int r = enter_parent(w, base_fd, rel);
	if (r < 0)
		return r;
	const char *name = last_name(rel);
	if (mkdirat(w->parent_fd, name, 0700)) {
		struct stat st;
		if (errno != EEXIST)
			return -errno;
		if (fstatat(w->parent_fd, name, &st, AT_SYMLINK_NOFOLLOW))
			return -errno;
		if (!S_ISDIR(st.st_mode)) {
			r = remove_name(w, name);
			if (r < 0)
				return r;
			if (mkdirat(w->parent_fd, name, 0700))
				return -errno;
		} else if ((st.st_mode & 0700) != 0700) {
			r = path_lookup_chmod(w->parent_fd, name, st.st_mode | 0700);
			if (r < 0)
				return r;
		}
	}
	return remember_dir(w, base_fd, rel, mode, mtime_ns);
}

/* Opens the directory and removes what has the name. */
static int clear_name(struct tree_write *w, int base_fd, const char *rel)
{
	int r = enter_parent(w, base_fd, rel);
	if (r < 0)
		return r;
	r = remove_name(w, last_name(rel));
	return r == -ENOENT ? 0 : r;
}

int tree_write_file(struct tree_write *w, int base_fd, const char *rel)
{
	int r = enter_parent(w, base_fd, rel);
	if (r < 0)
		return r;
	int flags = O_WRONLY | O_CREAT | O_EXCL;
	int fd = path_lookup_open_plain(w->parent_fd, last_name(rel), flags, 0600);
	if (fd != -EEXIST)
		return fd;
	r = clear_name(w, base_fd, rel);
	return r < 0 ? r : path_lookup_open_plain(w->parent_fd, last_name(rel), flags, 0600);
}

static struct timespec timespec_of(int64_t ns)
{
	struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
	if (t.tv_nsec < 0) {
		t.tv_nsec += 1000000000;
		t.tv_sec--;
	}
	return t;
}

int tree_write_finish_file(int fd, uint64_t size, uint32_t mode, int64_t mtime_ns)
{
	struct stat st;
	if (fstat(fd, &st))
		return -errno;
	if ((uint64_t)st.st_size != size && ftruncate(fd, (off_t)size))
		return -errno;
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT }, timespec_of(mtime_ns) };
	if (futimens(fd, t) || fchmod(fd, mode & 01777)) /* never set-id bits */
		return -errno;
	return 0;
}

int tree_write_link(struct tree_write *w, int base_fd, const char *rel, const char *target,
		    int64_t mtime_ns)
{
	int r = clear_name(w, base_fd, rel);
	if (r < 0)
		return r;
	if (symlinkat(target, w->parent_fd, last_name(rel)))
		return -errno;
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT }, timespec_of(mtime_ns) };
	return utimensat(w->parent_fd, last_name(rel), t, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
}

int tree_write_hard_link(struct tree_write *w, int base_fd, const char *rel, int from_base_fd,
			 const char *from_rel)
{
	char parent[PATH_MAX];
	size_t n = (size_t)(last_name(from_rel) - from_rel);
	memcpy(parent, from_rel, n);
	parent[n ? n - 1 : 0] = '\0';
	cleanup_close int from =
		path_lookup_open_plain(from_base_fd, parent, O_PATH | O_DIRECTORY, 0);
	if (from < 0)
		return from;
	int r = clear_name(w, base_fd, rel);
	if (r < 0)
		return r;
	return linkat(from, last_name(from_rel), w->parent_fd, last_name(rel), 0) ? -errno : 0;
}

int tree_write_finish(struct tree_write *w)
{
	/* In reverse order, so the deepest first: an inaccessible parent hides its children. */
	for (size_t i = w->dir_count; i-- > 0;) {
		const struct tree_write_dir *d = &w->dirs[i];
		cleanup_close int fd =
			path_lookup_open_plain(d->base_fd, d->rel, O_RDONLY | O_DIRECTORY, 0);
		if (fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR)
			continue; /* the guest removed or replaced it */
		struct timespec t[2] = { { .tv_nsec = UTIME_OMIT }, timespec_of(d->mtime_ns) };
		if (fd < 0)
			return fd;
		if (futimens(fd, t) || fchmod(fd, d->mode))
			return -errno;
	}
	return 0;
}
