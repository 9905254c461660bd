/* files/restore.c - makes a workspace equal to a tree image. Surplus files are removed first, so
 * that the quota has room for new ones. Modes and times of directories are set last. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "files/path_lookup.h"
#include "files/tree_image.h"

enum { GONE = -1, WORKERS = 2, SHARE = 512, LARGE_COUNT = 256, LARGE_BYTES = 4 << 20 };

struct restoring {
	const struct tree_image *image;
	struct workspace *from; /* for an outline: the workspace with the contents */
	struct workspace *ws;
	struct listing now;
	int32_t *now_of; /* per entry of the image: the existing entry that can stay, or GONE */
	char *scratch;
	int dir_fd; /* of the directory whose children are being created */
	int32_t dir;
	int from_fd; /* the same directory in `from` */
};

static void restoring_done(struct restoring *r)
{
	close_fdp(&r->dir_fd);
	close_fdp(&r->from_fd);
	listing_done(&r->now);
	free(r->now_of);
	free(r->scratch);
}

static int open_dir(const struct listing *l, int base_fd, size_t index)
{
	char path[PATH_MAX];
	if (!listing_path(l, index, sizeof(path), path))
		return -ENAMETOOLONG;
	return path_lookup_open_plain(base_fd, path, O_PATH | O_DIRECTORY, 0);
}

/* Entries of the same type are kept and updated. Hard-linked files are created anew. */
static bool can_stay(const struct listing_entry *want, const struct listing_entry *is)
{
	if ((want->mode & S_IFMT) != (is->mode & S_IFMT))
		return false;
	return S_ISDIR(want->mode) || (want->nlink == 1 && is->nlink == 1);
}

/* Handles a directory that is in both: pairs its children and removes those that are not in the
 * image. */
static int clear_dir(struct restoring *r, size_t d)
{
	const struct listing_entry *want = &r->image->tree.entries[d];
	const struct listing_entry *is = &r->now.entries[r->now_of[d]];
	uint32_t i = want->first_child, end = i + want->child_count;
	cleanup_close int dir_fd = -1;
	for (uint32_t j = is->first_child; j < is->first_child + is->child_count; j++) {
		const char *name = listing_name(&r->now, j);
		int c = 1;
		while (i < end && (c = strcmp(listing_name(&r->image->tree, i), name)) < 0)
			i++;
		if (i < end && c == 0) {
			uint32_t at = i++;
			if (can_stay(&r->image->tree.entries[at], &r->now.entries[j])) {
				r->now_of[at] = (int32_t)j;
				continue;
			}
		}
		if (dir_fd < 0)
			dir_fd = open_dir(&r->now, r->ws->root_fd, (size_t)r->now_of[d]);
		if (dir_fd < 0)
			return dir_fd;
		int e = removal_at(r->ws, dir_fd, name);
		if (e < 0 && e != -ENOENT)
			return e;
	}
	return 0;
}

static int set_times(int dir_fd, const char *name, int64_t mtime_ns)
{
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT } };
	t[1].tv_sec = mtime_ns / 1000000000;
	t[1].tv_nsec = mtime_ns % 1000000000;
	if (t[1].tv_nsec < 0) {
		t[1].tv_nsec += 1000000000;
		t[1].tv_sec--;
	}
	int r = name ? utimensat(dir_fd, name, t, AT_SYMLINK_NOFOLLOW) : futimens(dir_fd, t);
	return r ? -errno : 0;
}

static int make_hard_link(struct restoring *r, uint32_t first, const char *name)
{
	const struct listing *l = &r->image->tree;
	cleanup_close int dir = open_dir(l, r->ws->root_fd, (size_t)l->entries[first].parent);
	if (dir < 0)
		return dir;
	return linkat(dir, listing_name(l, first), r->dir_fd, name, 0) ? -errno : 0;
}

static int copy_dense(int from, int to, char *scratch)
{
	for (;;) {
		ssize_t n = read(from, scratch, CONTENT_CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		int r = file_write_all(to, scratch, (size_t)n);
		if (r < 0)
			return r;
		if (n < CONTENT_CHUNK / 2)
			return 0;
	}
}

/* Enters the ids of the source workspace, if they differ. */
static int enter_other(const struct restoring *r, struct owner *o)
{
	const struct workspace_options *from = &r->from->opts, *to = &r->ws->opts;
	bool is_same = from->owner_uid == to->owner_uid && from->owner_gid == to->owner_gid;
	return is_same ? 0 : owner_enter(o, from->owner_uid, from->owner_gid);
}

/* Copies directly from the file of another workspace, if there is nothing to compare. */
static int fill_from(struct restoring *r, const char *name, int fd, uint64_t current_size)
{
	cleanup_owner struct owner other = { 0 };
	int f = enter_other(r, &other);
	if (f < 0 || r->from_fd < 0)
		return f;
	cleanup_close int from = path_lookup_open_forced(r->from_fd, name, O_RDONLY);
	owner_leave(&other);
	struct stat st;
	if (from < 0)
		return from == -ENOENT || from == -ELOOP ? 0 : from;
	if (fstat(from, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	if (!current_size && st.st_blocks * 512 >= st.st_size)
		return copy_dense(from, fd, r->scratch);
	struct content *b = NULL;
	int e = content_read(from, (uint64_t)st.st_size, (uint64_t)st.st_blocks, NULL, r->scratch,
			     UINT64_MAX, &b);
	if (e == 0)
		e = content_sync(b, fd, current_size, r->scratch);
	content_unref(b);
	return e;
}

static int make_file(struct restoring *r, size_t i, const char *name)
{
	const struct listing_entry *e = &r->image->tree.entries[i];
	mode_t mode = e->mode & 07777;
	bool is_new = r->now_of[i] < 0;
	if (r->image->same[i] != i)
		return make_hard_link(r, r->image->same[i], name);
	cleanup_close int fd =
		is_new ? path_lookup_open_plain(r->dir_fd, name, O_RDWR | O_CREAT | O_EXCL,
						mode | 0600)
		       : path_lookup_open_forced(r->dir_fd, name, O_RDWR);
	struct stat st;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBUSY;
	int f = r->from ? fill_from(r, name, fd, (uint64_t)st.st_size)
			: content_sync(r->image->contents[i], fd, (uint64_t)st.st_size, r->scratch);
	if (f == 0 && (st.st_mode & 07777) != mode && fchmod(fd, mode))
		f = -errno;
	if (f == 0 && !is_new && fstat(fd, &st))
		f = -errno;
	if (f == 0 && st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec != e->mtime_ns)
		f = set_times(fd, NULL, e->mtime_ns);
	return f;
}

static int make_link(struct restoring *r, size_t i, const char *name)
{
	const struct content *b = r->image->contents[i];
	cleanup_free char *target = str_ndup(b->data, b->len);
	if (!target)
		return -ENOMEM;
	if (r->now_of[i] >= 0) {
		char is[PATH_MAX];
		ssize_t n = readlinkat(r->dir_fd, name, is, sizeof(is));
		if (n >= 0 && (size_t)n == b->len && !memcmp(is, target, b->len))
			return 0;
		if (unlinkat(r->dir_fd, name, 0))
			return -errno;
	}
	if (symlinkat(target, r->dir_fd, name))
		return -errno;
	return set_times(r->dir_fd, name, r->image->tree.entries[i].mtime_ns);
}

static int enter_dir(struct restoring *r, int32_t dir)
{
	if (r->dir == dir)
		return 0;
	close_fdp(&r->dir_fd);
	close_fdp(&r->from_fd);
	r->dir = -1;
	r->dir_fd = open_dir(&r->image->tree, r->ws->root_fd, (size_t)dir);
	if (r->dir_fd < 0)
		return r->dir_fd;
	r->dir = dir;
	if (!r->from)
		return 0;
	cleanup_owner struct owner other = { 0 };
	int f = enter_other(r, &other);
	if (f < 0)
		return f;
	r->from_fd = open_dir(&r->image->tree, r->from->root_fd, (size_t)dir);
	/* A directory that was removed or replaced meanwhile is not a loss. Any other failure would
	 * lose files. */
	f = r->from_fd;
	return f >= 0 || f == -ENOENT || f == -ENOTDIR || f == -ELOOP ? 0 : f;
}

static int make_entry(struct restoring *r, size_t i)
{
	const struct listing_entry *e = &r->image->tree.entries[i];
	if (e->parent < 0)
		return 0;
	int f = enter_dir(r, e->parent);
	if (f < 0)
		return f;
	const char *name = listing_name(&r->image->tree, i);
	if (S_ISDIR(e->mode))
		return r->now_of[i] >= 0 || !mkdirat(r->dir_fd, name, 0700) ? 0 : -errno;
	if (S_ISFIFO(e->mode))
		return r->now_of[i] >= 0 || !mkfifoat(r->dir_fd, name, e->mode & 0777) ? 0 : -errno;
	if (!r->image->contents[i] && !(r->from && S_ISREG(e->mode)))
		return 0; /* a socket, or a file that disappeared while the image was taken */
	return S_ISLNK(e->mode) ? make_link(r, i, name) : make_file(r, i, name);
}

static int finish_dir(struct restoring *r, size_t i)
{
	const struct listing_entry *e = &r->image->tree.entries[i];
	char path[PATH_MAX];
	if (!listing_path(&r->image->tree, i, sizeof(path), path))
		return -ENAMETOOLONG;
	cleanup_close int fd =
		path_lookup_open_plain(r->ws->root_fd, path, O_RDONLY | O_DIRECTORY, 0);
	struct stat st;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return -errno;
	if (st.st_mode != e->mode && fchmod(fd, e->mode & 07777))
		return -errno;
	return set_times(fd, NULL, e->mtime_ns);
}

/* Lists the current entries and which of them can stay. */
static int compare_with_now(struct restoring *r)
{
	const char *tops[WORKSPACE_TREES];
	for (int i = 0; i < WORKSPACE_TREES; i++)
		tops[i] = path_lookup_tree_name(i);
	int e = listing_read(&r->now, r->ws->root_fd, tops, WORKSPACE_TREES, true);
	size_t count = r->image->tree.count;
	for (size_t i = 0; i < count; i++)
		r->now_of[i] = i < WORKSPACE_TREES ? (int32_t)i : GONE;
	for (size_t i = 0; e == 0 && i < count; i++)
		if (r->now_of[i] != GONE && S_ISDIR(r->image->tree.entries[i].mode))
			e = clear_dir(r, i);
	return e;
}

/* Files are most of the work and independent of each other, so several threads restore them. */
struct worker {
	struct restoring r;
	uint32_t index, count;
	pthread_t thread;
	int result;
};

static void worker_done(struct worker *w)
{
	close_fdp(&w->r.dir_fd);
	close_fdp(&w->r.from_fd);
	free(w->r.scratch);
}

static void *make_files(void *arg)
{
	struct worker *w = arg;
	const struct tree_image *image = w->r.image;
	for (size_t i = 0; w->result == 0 && i < image->tree.count; i++) {
		const struct listing_entry *e = &image->tree.entries[i];
		/* Divided by directory, so that two threads rarely wait for the same one; large
		 * ones also by position. */
		uint32_t turn = (uint32_t)e->parent + (uint32_t)i / SHARE;
		if (S_ISREG(e->mode) && image->same[i] == i && turn % w->count == w->index)
			w->result = make_entry(&w->r, i);
	}
	return NULL;
}

static uint32_t worker_count(const struct tree_image *image)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < image->tree.count; i++)
		bytes += image->tree.entries[i].size;
	bool is_large = bytes >= LARGE_BYTES || image->tree.count >= LARGE_COUNT;
	return is_large && sysconf(_SC_NPROCESSORS_ONLN) > 1 ? WORKERS : 1;
}

static int make_all_files(const struct restoring *r)
{
	uint32_t count = worker_count(r->image), started = 1;
	CLEANUP(worker_done) struct worker mine = { 0 };
	CLEANUP(worker_done) struct worker other = { 0 };
	struct worker *all[WORKERS] = { &mine, &other };
	int e = 0;
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct worker *w = all[i];
		w->r = *r;
		w->r.dir = w->r.dir_fd = w->r.from_fd = -1;
		w->r.scratch = i < count ? malloc(CONTENT_CHUNK) : NULL;
		w->index = i;
		w->count = count;
		if (i < count && !w->r.scratch)
			return -ENOMEM;
	}
	if (count > 1 && pthread_create(&other.thread, NULL, make_files, &other) == 0)
		started = 2;
	else
		mine.count = 1;
	(void)make_files(&mine);
	e = mine.result;
	if (started > 1) {
		(void)pthread_join(other.thread, NULL);
		e = e ? e : other.result;
	}
	return e;
}

int tree_image_restore(const struct tree_image *image, struct workspace *from, struct workspace *ws)
{
	CLEANUP(restoring_done)
	struct restoring r = {
		.image = image, .from = from, .ws = ws, .dir_fd = -1, .dir = -1, .from_fd = -1
	};
	r.now.base_fd = -1;
	r.scratch = malloc(CONTENT_CHUNK);
	r.now_of = mem_array(image->tree.count, sizeof(*r.now_of));
	if (!r.scratch || !r.now_of)
		return -ENOMEM;
	int e = compare_with_now(&r);
	for (size_t i = 0; e == 0 && i < image->tree.count; i++)
		if (!S_ISREG(image->tree.entries[i].mode))
			e = make_entry(&r, i);
	if (e == 0)
		e = make_all_files(&r);
	for (size_t i = 0; e == 0 && i < image->tree.count; i++)
		if (image->same[i] != i)
			e = make_entry(&r, i);
	if (e < 0)
		return e;
	r.now.opened_count = 0; /* from here on the image's modes apply */
	for (size_t i = image->tree.count; e == 0 && i-- > 0;)
		if (S_ISDIR(image->tree.entries[i].mode))
			e = finish_dir(&r, i);
	return e;
}
