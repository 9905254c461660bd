/* files/usage.c - how much a workspace holds, and whether more fits. A tmpfs enforces the quota
 * itself. In an ordinary directory we count, and reuse a count for a short time only. */
#include <errno.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "files/listing.h"
#include "files/path_lookup.h"

enum { ESTIMATE_NS = 200 * 1000 * 1000 };

static int count(const struct workspace *ws, struct workspace_usage *ret)
{
	const char *tops[WORKSPACE_TREES];
	for (int t = 0; t < WORKSPACE_TREES; t++)
		tops[t] = path_lookup_tree_name(t);
	cleanup_listing struct listing l = { .base_fd = -1 };
	int r = listing_read(&l, ws->root_fd, tops, WORKSPACE_TREES, true);
	if (r < 0)
		return r;
	ret->bytes = 0;
	for (size_t i = 0; i < l.count; i++) {
		const struct listing_entry *e = &l.entries[i];
		uint64_t links = S_ISDIR(e->mode) || !e->nlink ? 1 : e->nlink;
		ret->bytes += e->blocks * 512 / links;
	}
	ret->files = l.count - WORKSPACE_TREES;
	return 0;
}

int usage_measure(struct workspace *ws, struct workspace_usage *ret)
{
	struct workspace_usage u = { .max_bytes = ws->opts.max_bytes,
				     .max_files = ws->opts.max_files };
	struct statvfs fs;
	if (ws->is_tmpfs) {
		if (fstatvfs(ws->root_fd, &fs))
			return -errno;
		u.bytes = (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
		u.files = (uint64_t)(fs.f_files - fs.f_ffree);
		if (fs.f_blocks)
			u.max_bytes = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
		if (fs.f_files)
			u.max_files = (uint64_t)fs.f_files;
	} else {
		int r = count(ws, &u);
		if (r < 0)
			return r;
	}
	*ret = u;
	return 0;
}

int usage_charge(struct workspace *ws, uint64_t bytes, uint64_t files)
{
	if (ws->is_tmpfs || (!ws->opts.max_bytes && !ws->opts.max_files))
		return 0;
	(void)pthread_mutex_lock(&ws->lock);
	uint64_t now = clock_now_ns();
	struct workspace_usage *u = &ws->estimate;
	int r = 0;
	if (!ws->estimate_ns || now - ws->estimate_ns > ESTIMATE_NS) {
		r = usage_measure(ws, u);
		ws->estimate_ns = now;
	}
	if (r == 0 && ((u->max_bytes && u->bytes + bytes > u->max_bytes) ||
		       (u->max_files && u->files + files > u->max_files))) {
		r = -ENOSPC;
		ws->estimate_ns = 0; /* so that files removed since count at the next attempt */
	} else if (r == 0) {
		u->bytes += bytes;
		u->files += files;
	}
	(void)pthread_mutex_unlock(&ws->lock);
	return r;
}
