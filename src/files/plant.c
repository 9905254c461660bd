/* files/plant.c - making files, directories and links at plain paths beneath a directory. */
#include "files/plant.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

void plant_init(struct plant *p, struct workspace *ws)
{
	*p = (struct plant){ .ws = ws, .base_fd = -1, .parent_fd = -1 };
}

void plant_done(struct plant *p)
{
	close_fdp(&p->parent_fd);
	for (size_t i = 0; i < p->dir_count; i++)
		free(p->dirs[i].rel);
	free(p->dirs);
	p->dirs = NULL;
	p->dir_count = 0;
}

static const char *last_name(const char *rel)
{
	const char *slash = strrchr(rel, '/');
	return slash ? slash + 1 : rel;
}

/* Makes every directory of the path that is missing. */
static int make_parents(int base_fd, const char *path)
{
	char done[PATH_MAX] = "";
	const char *at = path;
	while (*at) {
		size_t n = strcspn(at, "/");
		char name[NAME_MAX + 1];
		memcpy(name, at, n);
		name[n] = '\0';
		cleanup_close int fd = place_open_plain(base_fd, done, O_PATH | O_DIRECTORY, 0);
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

/* The directory that holds rel, made where it is missing. Stays p's. */
static int enter_parent(struct plant *p, int base_fd, const char *rel)
{
	char parent[PATH_MAX];
	size_t n = (size_t)(last_name(rel) - rel);
	memcpy(parent, rel, n);
	parent[n ? n - 1 : 0] = '\0';
	if (p->parent_fd >= 0 && p->base_fd == base_fd && !strcmp(p->parent, parent))
		return 0;
	close_fdp(&p->parent_fd);
	int fd = place_open_plain(base_fd, parent, O_PATH | O_DIRECTORY, 0);
	if (fd == -ENOENT) {
		int r = make_parents(base_fd, parent);
		if (r < 0)
			return r;
		fd = place_open_plain(base_fd, parent, O_PATH | O_DIRECTORY, 0);
	}
	if (fd < 0)
		return fd;
	p->parent_fd = fd;
	p->base_fd = base_fd;
	memcpy(p->parent, parent, n + 1);
	return 0;
}

static int remember_dir(struct plant *p, int base_fd, const char *rel, uint32_t mode,
			int64_t mtime_ns)
{
	if (p->dir_count == p->dir_cap) {
		size_t cap = p->dir_cap ? p->dir_cap * 2 : 32;
		void *q = mem_grow(p->dirs, cap, sizeof(*p->dirs));
		if (!q)
			return -ENOMEM;
		p->dirs = q;
		p->dir_cap = cap;
	}
	char *copy = str_dup(rel);
	if (!copy)
		return -ENOMEM;
	p->dirs[p->dir_count++] = (struct plant_dir){ base_fd, copy, mode & 01777, mtime_ns };
	return 0;
}

/* Without a workspace there is no stage, and whole directories are not ours to remove. */
static int remove_name(struct plant *p, const char *name)
{
	if (p->ws)
		return removal_at(p->ws, p->parent_fd, name);
	return unlinkat(p->parent_fd, name, 0) ? -errno : 0;
}

int plant_directory(struct plant *p, int base_fd, const char *rel, uint32_t mode, int64_t mtime_ns)
{
	if (!*rel)
		return remember_dir(p, base_fd, rel, mode, mtime_ns);
	int r = enter_parent(p, base_fd, rel);
	if (r < 0)
		return r;
	const char *name = last_name(rel);
	if (mkdirat(p->parent_fd, name, 0700)) {
		struct stat st;
		if (errno != EEXIST)
			return -errno;
		if (fstatat(p->parent_fd, name, &st, AT_SYMLINK_NOFOLLOW))
			return -errno;
		if (!S_ISDIR(st.st_mode)) {
			r = remove_name(p, name);
			if (r < 0)
				return r;
			if (mkdirat(p->parent_fd, name, 0700))
				return -errno;
		} else if ((st.st_mode & 0700) != 0700) {
			r = place_chmod(p->parent_fd, name, st.st_mode | 0700);
			if (r < 0)
				return r;
		}
	}
	return remember_dir(p, base_fd, rel, mode, mtime_ns);
}

/* Opens the directory and frees the name. */
static int clear_name(struct plant *p, int base_fd, const char *rel)
{
	int r = enter_parent(p, base_fd, rel);
	if (r < 0)
		return r;
	r = remove_name(p, last_name(rel));
	return r == -ENOENT ? 0 : r;
}

int plant_file(struct plant *p, int base_fd, const char *rel)
{
	int r = enter_parent(p, base_fd, rel);
	if (r < 0)
		return r;
	int flags = O_WRONLY | O_CREAT | O_EXCL;
	int fd = place_open_plain(p->parent_fd, last_name(rel), flags, 0600);
	if (fd != -EEXIST)
		return fd;
	r = clear_name(p, base_fd, rel);
	return r < 0 ? r : place_open_plain(p->parent_fd, last_name(rel), flags, 0600);
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

int plant_finish_file(int fd, uint64_t size, uint32_t mode, int64_t mtime_ns)
{
	struct stat st;
	if (fstat(fd, &st))
		return -errno;
	if ((uint64_t)st.st_size != size && ftruncate(fd, (off_t)size))
		return -errno;
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT }, timespec_of(mtime_ns) };
	if (futimens(fd, t) || fchmod(fd, mode & 01777)) /* never a set-id bit */
		return -errno;
	return 0;
}

int plant_link(struct plant *p, int base_fd, const char *rel, const char *target, int64_t mtime_ns)
{
	int r = clear_name(p, base_fd, rel);
	if (r < 0)
		return r;
	if (symlinkat(target, p->parent_fd, last_name(rel)))
		return -errno;
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT }, timespec_of(mtime_ns) };
	return utimensat(p->parent_fd, last_name(rel), t, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
}

int plant_hard_link(struct plant *p, int base_fd, const char *rel, int from_base_fd,
		    const char *from_rel)
{
	char parent[PATH_MAX];
	size_t n = (size_t)(last_name(from_rel) - from_rel);
	memcpy(parent, from_rel, n);
	parent[n ? n - 1 : 0] = '\0';
	cleanup_close int from = place_open_plain(from_base_fd, parent, O_PATH | O_DIRECTORY, 0);
	if (from < 0)
		return from;
	int r = clear_name(p, base_fd, rel);
	if (r < 0)
		return r;
	return linkat(from, last_name(from_rel), p->parent_fd, last_name(rel), 0) ? -errno : 0;
}

int plant_finish(struct plant *p)
{
	/* The deepest last in the archive come first here: a closed parent hides its children. */
	for (size_t i = p->dir_count; i-- > 0;) {
		const struct plant_dir *d = &p->dirs[i];
		cleanup_close int fd =
			place_open_plain(d->base_fd, d->rel, O_RDONLY | O_DIRECTORY, 0);
		if (fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR)
			continue; /* the guest was quicker */
		struct timespec t[2] = { { .tv_nsec = UTIME_OMIT }, timespec_of(d->mtime_ns) };
		if (fd < 0)
			return fd;
		if (futimens(fd, t) || fchmod(fd, d->mode))
			return -errno;
	}
	return 0;
}
