/* files/removal.c - removes whole trees that a guest made, however deep. A directory is first moved
 * out of the guest's sight, so it disappears atomically. Its subdirectories are then moved beside
 * it, so neither descriptors nor stack grow with the depth. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "files/path_lookup.h"

enum { MAX_PASSES = 1000 };

struct pending {
	char (*names)[STAGE_NAME_SIZE];
	size_t count, cap;
};

static void pending_done(struct pending *p)
{
	free(p->names);
}

/* Moves a directory to the stage and remembers it. */
static int set_aside(const struct workspace *ws, struct pending *p, int dir_fd, const char *name)
{
	if (p->count == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 16;
		void *q = mem_grow(p->names, cap, sizeof(*p->names));
		if (!q)
			return -ENOMEM;
		p->names = q;
		p->cap = cap;
	}
	char *staged = p->names[p->count];
	path_lookup_stage_name(staged);
	/* A directory must be writable itself to get another parent. */
	int r = renameat(dir_fd, name, ws->stage_fd, staged) ? -errno : 0;
	struct stat st;
	if (r == -EACCES && !fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) &&
	    !(st.st_mode & 0200)) {
		(void)path_lookup_chmod(dir_fd, name, st.st_mode | 0700);
		r = renameat(dir_fd, name, ws->stage_fd, staged) ? -errno : 0;
		if (r < 0)
			(void)path_lookup_chmod(dir_fd, name, st.st_mode);
	}
	if (r == 0)
		p->count++;
	return r;
}

static int remove_entry(const struct workspace *ws, struct pending *p, int dir_fd, const char *name)
{
	if (!unlinkat(dir_fd, name, 0) || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (!unlinkat(dir_fd, name, AT_REMOVEDIR) || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	return set_aside(ws, p, dir_fd, name);
}

/* One pass over a staged directory. The number of entries found, or -errno. */
static int empty_once(const struct workspace *ws, struct pending *p, DIR *dir)
{
	int met = 0;
	rewinddir(dir);
	for (;;) {
		errno = 0;
		const struct dirent *d = readdir(dir);
		if (!d)
			return errno ? -errno : met;
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		int r = remove_entry(ws, p, dirfd(dir), d->d_name);
		if (r < 0)
			return r;
		if (met < MAX_PASSES)
			met++;
	}
}

static int remove_staged(const struct workspace *ws, struct pending *p)
{
	char name[STAGE_NAME_SIZE];
	memcpy(name, p->names[--p->count], sizeof(name));
	if (!unlinkat(ws->stage_fd, name, AT_REMOVEDIR))
		return 0;
	(void)path_lookup_chmod(ws->stage_fd, name, 0700);
	int fd = path_lookup_open_plain(ws->stage_fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	DIR *dir = fdopendir(fd);
	if (!dir) {
		int e = errno;
		(void)close(fd);
		return -e;
	}
	/* A guest with an open descriptor can keep creating files there, but the number of passes
	 * is bounded. */
	int r = -EBUSY;
	for (int pass = 0; pass < MAX_PASSES; pass++) {
		r = empty_once(ws, p, dir);
		if (r < 0)
			break;
		r = unlinkat(ws->stage_fd, name, AT_REMOVEDIR) ? -errno : 0;
		if (r == 0 || (r != -ENOTEMPTY && r != -EEXIST))
			break;
		r = -EBUSY;
	}
	(void)closedir(dir);
	return r;
}

int removal_at(const struct workspace *ws, int dir_fd, const char *name)
{
	CLEANUP(pending_done) struct pending p = { 0 };
	if (!unlinkat(dir_fd, name, 0))
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (!unlinkat(dir_fd, name, AT_REMOVEDIR))
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	int r = set_aside(ws, &p, dir_fd, name);
	while (r == 0 && p.count)
		r = remove_staged(ws, &p);
	return r;
}
