/* files/pack.c - see pack.h. */
#include "files/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "files/listing.h"
#include "files/path_lookup.h"
#include "files/skipped.h"

enum { SIZE = CONTENT_CHUNK };

struct packing {
	struct listing l;
	struct tar *t;
	char *scratch;
	const struct strlist *leave_out; /* guest paths; NULL: none */
	uint32_t *first_name; /* per entry: the first entry with the same inode, or itself */
	int dir_fd;
	int32_t dir;
	bool is_workspace;       /* names start at the guest's root */
	struct skipped *skipped; /* NULL: nobody asks */
};

static void packing_done(struct packing *p)
{
	close_fdp(&p->dir_fd);
	listing_done(&p->l);
	free(p->scratch);
	free(p->first_name);
}

/* The name in the archive: "home/x" in the workspace is "home/user/x" for the guest. */
static bool name_of(const struct packing *p, size_t i, char ret[static PATH_MAX])
{
	char path[PATH_MAX];
	if (!listing_path(&p->l, i, sizeof(path), path))
		return false;
	const char *home = path_lookup_tree_name(WORKSPACE_HOME);
	size_t n = strlen(home);
	if (p->is_workspace && !strncmp(path, home, n) && (!path[n] || path[n] == '/')) {
		int len = snprintf(ret, PATH_MAX, "%s%s", path_lookup_tree_path(WORKSPACE_HOME) + 1,
				   path + n);
		return len > 0 && len < PATH_MAX;
	}
	memcpy(ret, path, strlen(path) + 1);
	return true;
}

static bool is_left_out(const struct packing *p, const char *name)
{
	for (size_t i = 0; p->leave_out && i < p->leave_out->count; i++) {
		const char *mount = p->leave_out->items[i] + 1;
		size_t n = strlen(mount);
		if (!strncmp(name, mount, n) && (!name[n] || name[n] == '/'))
			return true;
	}
	return false;
}

static int copy_dense(struct packing *p, int fd)
{
	for (;;) {
		ssize_t n = read(fd, p->scratch, SIZE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : tar_end(p->t);
		int r = tar_data(p->t, p->scratch, (size_t)n);
		if (r < 0)
			return r;
	}
}

static int pack_file(struct packing *p, struct tar_entry *e, int fd)
{
	struct stat st;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	e->size = (uint64_t)st.st_size;
	if (st.st_blocks * 512 >= st.st_size) {
		int r = tar_begin(p->t, e);
		return r < 0 ? r : copy_dense(p, fd);
	}
	/* Keeps holes, or a sparse file of a terabyte would take for ever. */
	struct content *b = NULL;
	int r = content_read(fd, e->size, (uint64_t)st.st_blocks, NULL, p->scratch, UINT64_MAX, &b);
	if (r < 0)
		return r;
	e->extents = b->extents;
	e->extent_count = b->extent_count;
	r = tar_begin(p->t, e);
	r = r < 0 ? r : tar_data(p->t, b->data, b->len);
	r = r < 0 ? r : tar_end(p->t);
	content_unref(b);
	return r;
}

static int enter_dir(struct packing *p, int32_t dir)
{
	char path[PATH_MAX];
	if (p->dir == dir)
		return 0;
	close_fdp(&p->dir_fd);
	p->dir = -1;
	if (!listing_path(&p->l, (size_t)dir, sizeof(path), path))
		return -ENAMETOOLONG;
	p->dir_fd = path_lookup_open_plain(p->l.base_fd, path, O_PATH | O_DIRECTORY, 0);
	if (p->dir_fd < 0)
		return p->dir_fd;
	p->dir = dir;
	return 0;
}

static int pack_contents(struct packing *p, size_t i, struct tar_entry *e)
{
	char target[PATH_MAX + 1];
	uint32_t first = p->first_name[i];
	const char *name = listing_name(&p->l, i);
	int r = enter_dir(p, p->l.entries[i].parent);
	if (r < 0)
		return r;
	if (first != i) {
		if (!name_of(p, first, target))
			return -ENAMETOOLONG;
		e->link = target;
		return tar_begin(p->t, e);
	}
	if (S_ISLNK(e->mode)) {
		ssize_t n = readlinkat(p->dir_fd, name, target, PATH_MAX);
		if (n < 0)
			return -errno;
		target[n] = '\0';
		e->link = target;
		return tar_begin(p->t, e);
	}
	cleanup_close int fd = path_lookup_open_forced(p->dir_fd, name, O_RDONLY);
	return fd < 0 ? fd : pack_file(p, e, fd);
}

static int leave_out(struct packing *p, const char *name, const char *reason)
{
	return p->skipped ? skipped_add(p->skipped, name, reason) : 0;
}

/* A FIFO or a device could block or harm whoever unpacks the archive. */
static const char *judge_type(uint32_t mode)
{
	if (S_ISDIR(mode) || S_ISREG(mode) || S_ISLNK(mode))
		return NULL;
	return S_ISFIFO(mode) ? "FIFO" : S_ISSOCK(mode) ? "socket" : "device";
}

static int pack_entry(struct packing *p, size_t i)
{
	const struct listing_entry *l = &p->l.entries[i];
	char name[PATH_MAX];
	if (l->parent < 0 && !p->is_workspace)
		return 0; /* the directory itself */
	if (!name_of(p, i, name))
		return -ENAMETOOLONG;
	if (is_left_out(p, name))
		return 0;
	const char *reason = judge_type(l->mode);
	if (reason)
		return leave_out(p, name, reason);
	struct tar_entry e = { .name = name, .mode = l->mode, .mtime_ns = l->mtime_ns };
	if (S_ISDIR(l->mode))
		return tar_begin(p->t, &e);
	int r = pack_contents(p, i, &e);
	bool was_replaced = r == -ENOENT || r == -ELOOP || r == -ENOTDIR || r == -EINVAL;
	return was_replaced ? leave_out(p, name, "replaced while the archive was made") : r;
}

static int by_inode(const void *a, const void *b, void *arg)
{
	const struct listing_entry *entries = arg;
	const uint32_t *x = a, *y = b;
	uint64_t left = entries[*x].ino, right = entries[*y].ino;

	if (left != right)
		return left < right ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

/* Of the names of one file, the first in the listing has the contents. */
static int find_hard_links(struct packing *p)
{
	p->first_name = mem_array(p->l.count, sizeof(*p->first_name));
	cleanup_free uint32_t *linked = mem_array(p->l.count, sizeof(*linked));
	if (!p->first_name || !linked)
		return -ENOMEM;
	size_t n = 0;
	for (uint32_t i = 0; i < p->l.count; i++) {
		p->first_name[i] = i;
		if (S_ISREG(p->l.entries[i].mode) && p->l.entries[i].nlink > 1)
			linked[n++] = i;
	}
	qsort_r(linked, n, sizeof(*linked), by_inode, p->l.entries);
	for (size_t k = 1; k < n; k++)
		if (p->l.entries[linked[k]].ino == p->l.entries[linked[k - 1]].ino)
			p->first_name[linked[k]] = p->first_name[linked[k - 1]];
	return 0;
}

static int pack_all(struct packing *p, int base_fd, const char *const *tops, size_t count)
{
	p->scratch = malloc(SIZE);
	if (!p->scratch)
		return -ENOMEM;
	int r = listing_read(&p->l, base_fd, tops, count, true);
	if (r == 0)
		r = find_hard_links(p);
	for (size_t i = 0; r == 0 && i < p->l.count; i++)
		r = pack_entry(p, i);
	return r;
}

int pack_workspace(struct workspace *ws, struct tar *t)
{
	const char *tops[WORKSPACE_TREES];
	for (int i = 0; i < WORKSPACE_TREES; i++)
		tops[i] = path_lookup_tree_name(i);
	CLEANUP(packing_done)
	struct packing p = {
		.t = t, .leave_out = &ws->mounts, .dir_fd = -1, .dir = -1, .is_workspace = true
	};
	return pack_all(&p, ws->root_fd, tops, WORKSPACE_TREES);
}

/* One file, or a directory with names relative to it. */
static int pack_path(struct workspace *ws, const char *path, struct tar *t, struct skipped *skipped)
{
	CLEANUP(packing_done)
	struct packing p = { .t = t, .dir_fd = -1, .dir = -1, .skipped = skipped };
	cleanup_path_lookup struct path_lookup at = PATH_LOOKUP_INIT;
	p.l.base_fd = -1;
	int r = path_lookup_find(ws, path, PATH_LOOKUP_FOLLOW, &at);
	if (r < 0)
		return r;
	struct stat st;
	r = path_lookup_stat(&at, &st);
	if (r < 0)
		return r;
	if (at.dir_fd < 0)
		return -EINVAL; /* "/" is not a single directory of the workspace */
	if (S_ISDIR(st.st_mode)) {
		cleanup_close int dir =
			path_lookup_open_plain(at.dir_fd, at.name, O_PATH | O_DIRECTORY, 0);
		static const char *const self[] = { "." };
		r = dir < 0 ? dir : pack_all(&p, dir, self, 1);
		listing_close(&p.l);
		return r;
	}
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	cleanup_close int fd = path_lookup_open(&at, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	p.scratch = malloc(SIZE);
	struct tar_entry e = { .name = at.name,
			       .mode = st.st_mode,
			       .mtime_ns = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec };
	return p.scratch ? pack_file(&p, &e, fd) : -ENOMEM;
}

struct gather {
	int fd;
	struct buf b;
};

/* Collects headers and data, so that a small file costs one write. */
static int gather(void *arg, const void *bytes, size_t len)
{
	struct gather *g = arg;
	if (g->b.len + len > g->b.max) {
		int r = file_write_all(g->fd, g->b.data, g->b.len);
		buf_clear(&g->b);
		if (r < 0)
			return r;
	}
	if (len > g->b.max / 2)
		return file_write_all(g->fd, bytes, len);
	return buf_add(&g->b, bytes, len) < 0 ? -ENOMEM : 0;
}

static char *report_json(const struct skipped *s)
{
	cleanup_json json_t *j = json_pack("{s:I, s:O}", "skipped_count", (json_int_t)s->count,
					   "skipped", s->entries);

	return j ? json_text(j, NULL) : NULL;
}

int pack_to_fd(struct workspace *ws, const char *path, int tar_fd, char **ret_report_json,
	       struct cordon_error **reterr)
{
	CLEANUP(skipped_done) struct skipped skipped = { 0 };
	struct gather g = { .fd = tar_fd };
	if (skipped_init(&skipped) < 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	buf_init(&g.b, (size_t)2 * SIZE);
	struct tar t = { .write = gather, .arg = &g };
	cleanup_owner struct owner owner = { 0 };
	int r = path_lookup_enter(ws, &owner, reterr);
	if (r < 0)
		return r;
	r = pack_path(ws, path, &t, &skipped);
	r = r < 0 ? r : tar_finish(&t);
	r = r < 0 ? r : file_write_all(tar_fd, g.b.data, g.b.len);
	buf_done(&g.b);
	if (r < 0)
		return path_lookup_fail(ws, path, r, reterr);
	char *report = ret_report_json ? report_json(&skipped) : NULL;
	if (ret_report_json && !report)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (ret_report_json)
		*ret_report_json = report;
	return 0;
}
