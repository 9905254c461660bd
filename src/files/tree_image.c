/* files/tree_image.c - see tree_image.h. */
#include "files/tree_image.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "files/path_lookup.h"

struct tree_image *tree_image_free(struct tree_image *image, uint64_t *ret_freed)
{
	uint64_t freed = 0;
	if (image && image->contents)
		for (size_t i = 0; i < image->tree.count; i++) {
			struct content *b = image->contents[i];
			freed += b && b->refs == 1 ? b->len : 0;
			image->contents[i] = content_unref(b);
		}
	if (image) {
		listing_done(&image->tree);
		free(image->contents);
		free(image->same);
		free(image);
	}
	if (ret_freed)
		*ret_freed = freed;
	return NULL;
}

/* For each entry of image: the entry of base with the same path, or -1. Walks both in parallel. */
static int32_t *match_base(const struct tree_image *image, const struct tree_image *base)
{
	int32_t *found = mem_array(image->tree.count, sizeof(*found));
	if (!found)
		return NULL;
	for (size_t i = 0; i < image->tree.count; i++)
		found[i] = i < WORKSPACE_TREES && base ? (int32_t)i : -1;
	for (size_t d = 0; base && d < image->tree.count; d++) {
		const struct listing_entry *e = &image->tree.entries[d];
		if (found[d] < 0 || !S_ISDIR(e->mode))
			continue;
		const struct listing_entry *b = &base->tree.entries[found[d]];
		uint32_t j = b->first_child, end = j + b->child_count;
		for (uint32_t i = e->first_child; i < e->first_child + e->child_count; i++) {
			int c = -1;
			while (j < end && (c = strcmp(listing_name(&base->tree, j),
						      listing_name(&image->tree, i))) < 0)
				j++;
			if (j < end && c == 0)
				found[i] = (int32_t)j++;
		}
	}
	return found;
}

static int compare_inodes(const void *a, const void *b, void *arg)
{
	const struct listing_entry *entries = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	if (entries[x].ino != entries[y].ino)
		return entries[x].ino < entries[y].ino ? -1 : 1;
	return x < y ? -1 : 1;
}

/* Groups names of the same inode. */
static int find_hard_links(struct tree_image *image)
{
	size_t n = 0;
	cleanup_free uint32_t *linked = mem_array(image->tree.count, sizeof(*linked));
	image->same = mem_array(image->tree.count, sizeof(*image->same));
	if (!linked || !image->same)
		return -ENOMEM;
	for (uint32_t i = 0; i < image->tree.count; i++) {
		image->same[i] = i;
		if (!S_ISDIR(image->tree.entries[i].mode) && image->tree.entries[i].nlink > 1)
			linked[n++] = i;
	}
	if (n)
		qsort_r(linked, n, sizeof(*linked), compare_inodes, image->tree.entries);
	for (size_t i = 1; i < n; i++)
		if (image->tree.entries[linked[i]].ino == image->tree.entries[linked[i - 1]].ino)
			image->same[linked[i]] = image->same[linked[i - 1]];
	return 0;
}

struct taking {
	struct tree_image *image;
	const struct tree_image *base;
	int32_t *base_index;
	char *scratch;
	uint64_t max_new_bytes;
	bool is_outline;
	int dir_fd; /* of the directory whose children are being read */
	int32_t dir;
};

static void taking_done(struct taking *t)
{
	close_fdp(&t->dir_fd);
	free(t->base_index);
	free(t->scratch);
}

static int take_link(int dir_fd, const char *name, struct content **ret)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dir_fd, name, target, sizeof(target));
	if (n < 0)
		return -errno;
	return content_from_bytes(target, (size_t)n, ret);
}

static int take_file(struct taking *t, size_t i, const char *name, struct content **ret)
{
	struct listing_entry *e = &t->image->tree.entries[i];
	cleanup_close int fd = path_lookup_open_forced(t->dir_fd, name, O_RDONLY);
	if (fd < 0)
		return fd;
	struct stat st;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	e->size = (uint64_t)st.st_size;
	e->mtime_ns = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
	struct content *like = t->base_index[i] >= 0 ? t->base->contents[t->base_index[i]] : NULL;
	return content_read(fd, e->size, (uint64_t)st.st_blocks, like, t->scratch,
			    t->max_new_bytes - t->image->new_bytes, ret);
}

/* Opens the directory that holds entry i, unless it is open already. */
static int enter_dir(struct taking *t, size_t i)
{
	const struct listing *l = &t->image->tree;
	if (t->dir == l->entries[i].parent)
		return 0;
	char path[PATH_MAX];
	close_fdp(&t->dir_fd);
	t->dir = -1;
	if (!listing_path(l, (size_t)l->entries[i].parent, sizeof(path), path))
		return -ENAMETOOLONG;
	t->dir_fd = path_lookup_open_plain(l->base_fd, path, O_PATH | O_DIRECTORY, 0);
	if (t->dir_fd < 0)
		return t->dir_fd;
	t->dir = l->entries[i].parent;
	return 0;
}

/* Removed or replaced since the listing: treated as if it had never been there. */
static bool was_replaced(int r)
{
	return r == -ENOENT || r == -ELOOP || r == -ENOTDIR || r == -EINVAL;
}

static int take_entry(struct taking *t, size_t i)
{
	struct tree_image *image = t->image;
	mode_t mode = image->tree.entries[i].mode;
	bool is_wanted = S_ISLNK(mode) || (S_ISREG(mode) && !t->is_outline);
	if (!is_wanted)
		return 0;
	if (image->same[i] != i) {
		struct content *first = image->contents[image->same[i]];
		image->contents[i] = first ? content_ref(first) : NULL;
		return 0;
	}
	const char *name = listing_name(&image->tree, i);
	int r = enter_dir(t, i);
	if (r == 0)
		r = S_ISLNK(mode) ? take_link(t->dir_fd, name, &image->contents[i])
				  : take_file(t, i, name, &image->contents[i]);
	if (r == 0 && image->contents[i]) {
		image->bytes += image->contents[i]->len;
		image->new_bytes += image->contents[i]->refs == 1 ? image->contents[i]->len : 0;
	}
	return was_replaced(r) ? 0 : r;
}

static int take(struct workspace *ws, const struct tree_image *base, uint64_t max_new_bytes,
		bool is_outline, struct tree_image **ret)
{
	const char *tops[WORKSPACE_TREES];
	for (int i = 0; i < WORKSPACE_TREES; i++)
		tops[i] = path_lookup_tree_name(i);
	cleanup_tree_image struct tree_image *image = mem_alloc(sizeof(*image));
	if (!image)
		return -ENOMEM;
	int r = is_outline ? listing_read_most(&image->tree, ws->root_fd, tops, WORKSPACE_TREES)
			   : listing_read(&image->tree, ws->root_fd, tops, WORKSPACE_TREES, true);
	if (r == 0)
		r = find_hard_links(image);
	if (r < 0)
		return r;
	CLEANUP(taking_done)
	struct taking t = { .image = image,
			    .base = base,
			    .base_index = match_base(image, base),
			    .scratch = malloc(CONTENT_CHUNK),
			    .max_new_bytes = max_new_bytes,
			    .is_outline = is_outline,
			    .dir_fd = -1,
			    .dir = -1 };
	image->contents = mem_array(image->tree.count, sizeof(*image->contents));
	if (!image->contents || !t.scratch || !t.base_index)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < image->tree.count; i++)
		r = take_entry(&t, i);
	if (r < 0)
		return r;
	if (!is_outline) /* for an outline, widened modes stay until the contents are copied */
		listing_close(&image->tree);
	*ret = TAKE_PTR(image);
	return 0;
}

int tree_image_take(struct workspace *ws, const struct tree_image *base, uint64_t max_new_bytes,
		    struct tree_image **ret)
{
	return take(ws, base, max_new_bytes, false, ret);
}

int tree_image_outline(struct workspace *ws, struct tree_image **ret)
{
	return take(ws, NULL, 0, true, ret);
}
