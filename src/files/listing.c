/* files/listing.c - see listing.h. */
#include "files/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "files/path_lookup.h"

static int grow(void **p, size_t *cap, size_t want, size_t size)
{
	if (want <= *cap)
		return 0;
	size_t cap_new = *cap ? *cap * 2 : 64;
	if (cap_new < want)
		cap_new = want;
	void *q = mem_grow(*p, cap_new, size);
	if (!q)
		return -ENOMEM;
	*p = q;
	*cap = cap_new;
	return 0;
}

static int add_name(struct listing *l, const char *name, uint32_t *ret)
{
	size_t n = strlen(name) + 1;
	if (l->names_len + n > UINT32_MAX)
		return -E2BIG;
	int r = grow((void **)&l->names, &l->names_cap, l->names_len + n, 1);
	if (r < 0)
		return r;
	memcpy(l->names + l->names_len, name, n);
	*ret = (uint32_t)l->names_len;
	l->names_len += n;
	return 0;
}

static int add_entry(struct listing *l, int32_t parent, const char *name, const struct stat *st)
{
	if (l->count >= LISTING_MAX_ENTRIES)
		return -E2BIG;
	int r = grow((void **)&l->entries, &l->cap, l->count + 1, sizeof(*l->entries));
	uint32_t at = 0;
	if (r == 0)
		r = add_name(l, name, &at);
	if (r < 0)
		return r;
	l->entries[l->count++] = (struct listing_entry){
		.parent = parent,
		.name = at,
		.mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink,
		.size = (uint64_t)st->st_size,
		.blocks = (uint64_t)st->st_blocks,
		.ino = st->st_ino,
		.mtime_ns = st->st_mtim.tv_sec * 1000000000LL + st->st_mtim.tv_nsec,
	};
	return 0;
}

const char *listing_name(const struct listing *l, size_t index)
{
	return l->names + l->entries[index].name;
}

bool listing_path(const struct listing *l, size_t index, size_t size, char *ret)
{
	/* Filled from the end of the buffer backwards, then moved to its start. */
	size_t at = size;
	for (int64_t i = (int64_t)index; i >= 0; i = l->entries[i].parent) {
		const char *name = listing_name(l, (size_t)i);
		size_t n = strlen(name);
		if (l->entries[i].parent < 0 && i != (int64_t)index && str_eq(name, "."))
			break;
		if (at < n + 1)
			return false;
		at -= n + 1;
		memcpy(ret + at, name, n);
		ret[at + n] = '/';
	}
	if (at == size)
		return false;
	memmove(ret, ret + at, size - at);
	ret[size - at - 1] = '\0';
	return true;
}

static int by_name(const void *a, const void *b, void *names)
{
	const struct listing_entry *x = a, *y = b;
	return strcmp((const char *)names + x->name, (const char *)names + y->name);
}

static int widen(struct listing *l, size_t index, const char *path)
{
	mode_t mode = l->entries[index].mode;
	if ((mode & 0700) == 0700)
		return 0;
	int r = grow((void **)&l->opened, &l->opened_cap, l->opened_count + 1, sizeof(*l->opened));
	if (r < 0)
		return r;
	r = path_lookup_chmod(l->base_fd, path, mode | 0700);
	if (r == 0)
		l->opened[l->opened_count++] = (uint32_t)index;
	return r == -EPERM ? 0 : r;
}

/* Whether a subdirectory is left out because its path is too long. */
static bool is_left_out(struct listing *l, size_t index, const char *path, const char *name)
{
	if (!l->leaves_deep || strlen(path) + 1 + strlen(name) + 1 <= PATH_MAX)
		return false;
	if (l->deep_count++ == 0)
		l->deep_above = (uint32_t)index;
	return true;
}

static int read_names(struct listing *l, size_t index, const char *path, DIR *dir)
{
	/* What is left out counts, too: see workspace.c. */
	for (size_t seen = 0;; seen++) {
		errno = 0;
		const struct dirent *d = readdir(dir);
		if (!d)
			return -errno;
		if (seen > (size_t)2 * LISTING_MAX_ENTRIES)
			return -E2BIG;
		const char *name = d->d_name;
		if (str_eq(name, ".") || str_eq(name, "..") || path_lookup_is_stage_name(name))
			continue;
		struct stat st;
		if (fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW)) {
			if (errno == ENOENT)
				continue; /* removed meanwhile */
			return -errno;
		}
		if (S_ISDIR(st.st_mode) && is_left_out(l, index, path, name))
			continue;
		int r = add_entry(l, (int32_t)index, name, &st);
		if (r < 0)
			return r;
	}
}

static int read_dir(struct listing *l, size_t index, bool forced)
{
	char path[PATH_MAX];
	if (!listing_path(l, index, sizeof(path), path))
		return -ENAMETOOLONG;
	int r = forced ? widen(l, index, path) : 0;
	if (r < 0)
		return r == -ENOENT || r == -ELOOP ? 0 : r;
	int fd = path_lookup_open_plain(l->base_fd, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0; /* removed or replaced meanwhile */
	if (fd < 0)
		return fd;
	DIR *dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	size_t first = l->count;
	r = read_names(l, index, path, dir);
	(void)closedir(dir);
	if (r < 0)
		return r;
	l->entries[index].first_child = (uint32_t)first;
	l->entries[index].child_count = (uint32_t)(l->count - first);
	if (l->count > first)
		qsort_r(l->entries + first, l->count - first, sizeof(*l->entries), by_name,
			l->names);
	return 0;
}

static int read_trees(struct listing *l, int base_fd, const char *const *tops, size_t top_count,
		      bool forced)
{
	l->base_fd = base_fd;
	for (size_t i = 0; i < top_count; i++) {
		struct stat st;
		if (fstatat(base_fd, tops[i], &st, AT_SYMLINK_NOFOLLOW))
			return -errno;
		if (!S_ISDIR(st.st_mode))
			return -ENOTDIR;
		int r = add_entry(l, LISTING_NO_PARENT, tops[i], &st);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < l->count; i++) {
		int r = S_ISDIR(l->entries[i].mode) ? read_dir(l, i, forced) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

int listing_read(struct listing *l, int base_fd, const char *const *tops, size_t top_count,
		 bool forced)
{
	*l = (struct listing){ 0 };
	return read_trees(l, base_fd, tops, top_count, forced);
}

int listing_read_most(struct listing *l, int base_fd, const char *const *tops, size_t top_count)
{
	*l = (struct listing){ .leaves_deep = true };
	return read_trees(l, base_fd, tops, top_count, true);
}

void listing_close(struct listing *l)
{
	/* Deepest first: an inaccessible parent would hide its children. */
	for (size_t i = l->opened_count; i-- > 0;) {
		char path[PATH_MAX];
		if (listing_path(l, l->opened[i], sizeof(path), path))
			(void)path_lookup_chmod(l->base_fd, path, l->entries[l->opened[i]].mode);
	}
	l->opened_count = 0;
	l->base_fd = -1;
}

void listing_done(struct listing *l)
{
	listing_close(l);
	free(l->entries);
	free(l->names);
	free(l->opened);
	*l = (struct listing){ .base_fd = -1 };
}
