/* files/restore.c - making a workspace equal to a picture. First everything goes that is too much,
 * so that the quota has room for what comes; modes and times of directories are set last. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "files/picture.h"
#include "files/place.h"

enum { GONE = -1 };

struct restoring {
	const struct picture *p;
	struct workspace *ws;
	struct listing now;
	int32_t *now_of; /* per entry of the picture: what is there now and can stay, or GONE */
	char *scratch;
	int dir_fd; /* of the directory whose children are being made */
	int32_t dir;
};

static void restoring_done(struct restoring *r)
{
	close_fdp(&r->dir_fd);
	listing_done(&r->now);
	free(r->now_of);
	free(r->scratch);
}

static int open_dir(const struct listing *l, int base_fd, size_t index)
{
	char path[PATH_MAX];
	if (!listing_path(l, index, sizeof(path), path))
		return -ENAMETOOLONG;
	return place_open_plain(base_fd, path, O_PATH | O_DIRECTORY, 0);
}

/* Names of one inode are made anew; all else of the same type is brought to what it should be. */
static bool can_stay(const struct listing_entry *want, const struct listing_entry *is)
{
	if ((want->mode & S_IFMT) != (is->mode & S_IFMT))
		return false;
	return S_ISDIR(want->mode) || (want->nlink == 1 && is->nlink == 1);
}

/* One directory that is in both: pairs its children and removes what has no place in the picture.
 */
static int clear_dir(struct restoring *r, size_t d)
{
	const struct listing_entry *want = &r->p->tree.entries[d];
	const struct listing_entry *is = &r->now.entries[r->now_of[d]];
	uint32_t i = want->first_child, end = i + want->child_count;
	cleanup_close int dir_fd = -1;
	for (uint32_t j = is->first_child; j < is->first_child + is->child_count; j++) {
		const char *name = listing_name(&r->now, j);
		int c = 1;
		while (i < end && (c = strcmp(listing_name(&r->p->tree, i), name)) < 0)
			i++;
		if (i < end && c == 0) {
			uint32_t at = i++;
			if (can_stay(&r->p->tree.entries[at], &r->now.entries[j])) {
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

static int make_file(struct restoring *r, size_t i, const char *name)
{
	const struct listing_entry *e = &r->p->tree.entries[i];
	int32_t now = r->now_of[i];
	uint32_t first = r->p->same[i];
	if (first != i) {
		cleanup_close int from = open_dir(&r->p->tree, r->ws->root_fd,
						  (size_t)r->p->tree.entries[first].parent);
		if (from < 0)
			return from;
		const char *of = listing_name(&r->p->tree, first);
		return linkat(from, of, r->dir_fd, name, 0) ? -errno : 0;
	}
	cleanup_close int fd =
		now >= 0 ? place_open_forced(r->dir_fd, name, O_RDWR)
			 : place_open_plain(r->dir_fd, name, O_RDWR | O_CREAT | O_EXCL, 0600);
	struct stat st;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBUSY;
	int e_r = body_sync(r->p->bodies[i], fd, (uint64_t)st.st_size, r->scratch);
	if (e_r == 0 && (st.st_mode & 07777) != (e->mode & 07777) && fchmod(fd, e->mode & 07777))
		e_r = -errno;
	if (e_r == 0 && fstat(fd, &st))
		e_r = -errno;
	if (e_r == 0 && st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec != e->mtime_ns)
		e_r = set_times(fd, NULL, e->mtime_ns);
	return e_r;
}

static int make_link(struct restoring *r, size_t i, const char *name)
{
	const struct body *b = r->p->bodies[i];
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
	return set_times(r->dir_fd, name, r->p->tree.entries[i].mtime_ns);
}

static int make_entry(struct restoring *r, size_t i)
{
	const struct listing_entry *e = &r->p->tree.entries[i];
	if (e->parent < 0)
		return 0;
	if (r->dir != e->parent) {
		close_fdp(&r->dir_fd);
		r->dir_fd = open_dir(&r->p->tree, r->ws->root_fd, (size_t)e->parent);
		r->dir = r->dir_fd >= 0 ? e->parent : -1;
	}
	if (r->dir_fd < 0)
		return r->dir_fd;
	const char *name = listing_name(&r->p->tree, i);
	if (S_ISDIR(e->mode))
		return r->now_of[i] >= 0 || !mkdirat(r->dir_fd, name, 0700) ? 0 : -errno;
	if (S_ISFIFO(e->mode))
		return r->now_of[i] >= 0 || !mkfifoat(r->dir_fd, name, e->mode & 0777) ? 0 : -errno;
	if (!r->p->bodies[i])
		return 0; /* a socket, or a file that was gone when the picture was taken */
	return S_ISLNK(e->mode) ? make_link(r, i, name) : make_file(r, i, name);
}

static int finish_dir(struct restoring *r, size_t i)
{
	const struct listing_entry *e = &r->p->tree.entries[i];
	char path[PATH_MAX];
	if (!listing_path(&r->p->tree, i, sizeof(path), path))
		return -ENAMETOOLONG;
	cleanup_close int fd = place_open_plain(r->ws->root_fd, path, O_RDONLY | O_DIRECTORY, 0);
	struct stat st;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return -errno;
	if (st.st_mode != e->mode && fchmod(fd, e->mode & 07777))
		return -errno;
	return set_times(fd, NULL, e->mtime_ns);
}

/* What is there now, and which of it can stay. */
static int compare_with_now(struct restoring *r)
{
	const char *tops[WORKSPACE_TREES];
	for (int i = 0; i < WORKSPACE_TREES; i++)
		tops[i] = place_tree_name(i);
	int e = listing_read(&r->now, r->ws->root_fd, tops, WORKSPACE_TREES, true);
	size_t count = r->p->tree.count;
	for (size_t i = 0; i < count; i++)
		r->now_of[i] = i < WORKSPACE_TREES ? (int32_t)i : GONE;
	for (size_t i = 0; e == 0 && i < count; i++)
		if (r->now_of[i] != GONE && S_ISDIR(r->p->tree.entries[i].mode))
			e = clear_dir(r, i);
	return e;
}

int picture_restore(const struct picture *p, struct workspace *ws)
{
	CLEANUP(restoring_done) struct restoring r = { .p = p, .ws = ws, .dir_fd = -1, .dir = -1 };
	r.now.base_fd = -1;
	r.scratch = malloc(BODY_CHUNK);
	r.now_of = mem_array(p->tree.count, sizeof(*r.now_of));
	if (!r.scratch || !r.now_of)
		return -ENOMEM;
	int e = compare_with_now(&r);
	for (size_t i = 0; e == 0 && i < p->tree.count; i++)
		e = make_entry(&r, i);
	if (e < 0)
		return e;
	r.now.opened_count = 0; /* from here on the picture's modes hold */
	for (size_t i = p->tree.count; e == 0 && i-- > 0;)
		if (S_ISDIR(p->tree.entries[i].mode))
			e = finish_dir(&r, i);
	return e;
}
