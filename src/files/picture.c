/* files/picture.c - all files of a workspace at one moment, in the host's memory. */
#include "files/picture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "files/place.h"

struct picture *picture_free(struct picture *p, uint64_t *ret_freed)
{
	uint64_t freed = 0;
	if (p && p->contents)
		for (size_t i = 0; i < p->tree.count; i++) {
			struct content *b = p->contents[i];
			freed += b && b->refs == 1 ? b->len : 0;
			p->contents[i] = content_unref(b);
		}
	if (p) {
		listing_done(&p->tree);
		free(p->contents);
		free(p->same);
		free(p);
	}
	if (ret_freed)
		*ret_freed = freed;
	return NULL;
}

/* Names beside each other in base, found by walking along with the picture: for entry i of the
 * picture, the entry of base with the same path, or -1. */
static int32_t *match_base(const struct picture *p, const struct picture *base)
{
	int32_t *found = mem_array(p->tree.count, sizeof(*found));
	if (!found)
		return NULL;
	for (size_t i = 0; i < p->tree.count; i++)
		found[i] = i < WORKSPACE_TREES && base ? (int32_t)i : -1;
	for (size_t d = 0; base && d < p->tree.count; d++) {
		const struct listing_entry *e = &p->tree.entries[d];
		if (found[d] < 0 || !S_ISDIR(e->mode))
			continue;
		const struct listing_entry *b = &base->tree.entries[found[d]];
		uint32_t j = b->first_child, end = j + b->child_count;
		for (uint32_t i = e->first_child; i < e->first_child + e->child_count; i++) {
			int c = -1;
			while (j < end && (c = strcmp(listing_name(&base->tree, j),
						      listing_name(&p->tree, i))) < 0)
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

/* Groups the names of one inode. */
static int find_hard_links(struct picture *p)
{
	size_t n = 0;
	cleanup_free uint32_t *linked = mem_array(p->tree.count, sizeof(*linked));
	p->same = mem_array(p->tree.count, sizeof(*p->same));
	if (!linked || !p->same)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->tree.count; i++) {
		p->same[i] = i;
		if (!S_ISDIR(p->tree.entries[i].mode) && p->tree.entries[i].nlink > 1)
			linked[n++] = i;
	}
	if (n)
		qsort_r(linked, n, sizeof(*linked), compare_inodes, p->tree.entries);
	for (size_t i = 1; i < n; i++)
		if (p->tree.entries[linked[i]].ino == p->tree.entries[linked[i - 1]].ino)
			p->same[linked[i]] = p->same[linked[i - 1]];
	return 0;
}

struct taking {
	struct picture *p;
	const struct picture *base;
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
	struct listing_entry *e = &t->p->tree.entries[i];
	cleanup_close int fd = place_open_forced(t->dir_fd, name, O_RDONLY);
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
			    t->max_new_bytes - t->p->new_bytes, ret);
}

/* Opens the directory that holds entry i, unless it is open already. */
static int enter_dir(struct taking *t, size_t i)
{
	const struct listing *l = &t->p->tree;
	if (t->dir == l->entries[i].parent)
		return 0;
	char path[PATH_MAX];
	close_fdp(&t->dir_fd);
	t->dir = -1;
	if (!listing_path(l, (size_t)l->entries[i].parent, sizeof(path), path))
		return -ENAMETOOLONG;
	t->dir_fd = place_open_plain(l->base_fd, path, O_PATH | O_DIRECTORY, 0);
	if (t->dir_fd < 0)
		return t->dir_fd;
	t->dir = l->entries[i].parent;
	return 0;
}

/* Gone or replaced since the listing: as if never seen. */
static bool was_replaced(int r)
{
	return r == -ENOENT || r == -ELOOP || r == -ENOTDIR || r == -EINVAL;
}

static int take_entry(struct taking *t, size_t i)
{
	struct picture *p = t->p;
	mode_t mode = p->tree.entries[i].mode;
	bool is_wanted = S_ISLNK(mode) || (S_ISREG(mode) && !t->is_outline);
	if (!is_wanted)
		return 0;
	if (p->same[i] != i) {
		struct content *first = p->contents[p->same[i]];
		p->contents[i] = first ? content_ref(first) : NULL;
		return 0;
	}
	const char *name = listing_name(&p->tree, i);
	int r = enter_dir(t, i);
	if (r == 0)
		r = S_ISLNK(mode) ? take_link(t->dir_fd, name, &p->contents[i])
				  : take_file(t, i, name, &p->contents[i]);
	if (r == 0 && p->contents[i]) {
		p->bytes += p->contents[i]->len;
		p->new_bytes += p->contents[i]->refs == 1 ? p->contents[i]->len : 0;
	}
	return was_replaced(r) ? 0 : r;
}

static int take(struct workspace *ws, const struct picture *base, uint64_t max_new_bytes,
		bool is_outline, struct picture **ret)
{
	const char *tops[WORKSPACE_TREES];
	for (int i = 0; i < WORKSPACE_TREES; i++)
		tops[i] = place_tree_name(i);
	cleanup_picture struct picture *p = mem_alloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	int r = is_outline ? listing_read_most(&p->tree, ws->root_fd, tops, WORKSPACE_TREES)
			   : listing_read(&p->tree, ws->root_fd, tops, WORKSPACE_TREES, true);
	if (r == 0)
		r = find_hard_links(p);
	if (r < 0)
		return r;
	CLEANUP(taking_done)
	struct taking t = { .p = p,
			    .base = base,
			    .base_index = match_base(p, base),
			    .scratch = malloc(CONTENT_CHUNK),
			    .max_new_bytes = max_new_bytes,
			    .is_outline = is_outline,
			    .dir_fd = -1,
			    .dir = -1 };
	p->contents = mem_array(p->tree.count, sizeof(*p->contents));
	if (!p->contents || !t.scratch || !t.base_index)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < p->tree.count; i++)
		r = take_entry(&t, i);
	if (r < 0)
		return r;
	if (!is_outline) /* else what was opened stays so until the contents are copied */
		listing_close(&p->tree);
	*ret = TAKE_PTR(p);
	return 0;
}

int picture_take(struct workspace *ws, const struct picture *base, uint64_t max_new_bytes,
		 struct picture **ret)
{
	return take(ws, base, max_new_bytes, false, ret);
}

int picture_outline(struct workspace *ws, struct picture **ret)
{
	return take(ws, NULL, 0, true, ret);
}
