/* files/change.c - see change.h. */
#include "files/change.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "files/path_lookup.h"

void change_list_done(struct change_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->items[i].rel);
	free(l->items);
	*l = (struct change_list){ 0 };
}

/* The guest directory; -errno. */
static int open_guest(const struct review *r)
{
	cleanup_path_lookup struct path_lookup p = PATH_LOOKUP_INIT;
	int e = path_lookup_find(r->ws, r->guest_dir, PATH_LOOKUP_FOLLOW, &p);
	if (e < 0)
		return e;
	return p.dir_fd < 0 ? -ENOENT
			    : path_lookup_open_plain(p.dir_fd, p.name, O_PATH | O_DIRECTORY, 0);
}

static int add(struct change_list *l, struct change c, const char *rel)
{
	if (l->count == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 16;
		void *p = mem_grow(l->items, cap, sizeof(*l->items));
		if (!p)
			return -ENOMEM;
		l->items = p;
		l->cap = cap;
	}
	c.rel = str_dup(rel);
	if (!c.rel)
		return -ENOMEM;
	l->items[l->count++] = c;
	return 0;
}

static int hash_now(int guest_fd, const char *rel, uint32_t mode,
		    unsigned char ret[static INTAKE_HASH_SIZE])
{
	if (S_ISLNK(mode)) {
		char target[PATH_MAX];
		cleanup_close int fd = path_lookup_open_plain(guest_fd, rel, O_PATH, 0);
		if (fd < 0)
			return fd;
		ssize_t n = readlinkat(fd, "", target, sizeof(target));
		if (n < 0)
			return -errno;
		intake_hash_bytes(target, (size_t)n, ret);
		return 0;
	}
	cleanup_close int fd = path_lookup_open_forced(guest_fd, rel, O_RDONLY);
	return fd < 0 ? fd : intake_hash_fd(fd, ret);
}

static int compare(struct change_list *l, int guest_fd, const char *rel,
		   const struct listing_entry *now, struct change_origin *was)
{
	struct change c = { .was = was, .mode = now->mode, .size = now->size };
	was->is_seen = true;
	if ((now->mode & S_IFMT) != (was->mode & S_IFMT)) {
		c.kind = CHANGE_TYPE;
		return add(l, c, rel);
	}
	if (!S_ISDIR(now->mode)) {
		unsigned char hash[INTAKE_HASH_SIZE];
		int r = now->size == was->size ? hash_now(guest_fd, rel, now->mode, hash) : 0;
		if (r < 0)
			return r;
		if (now->size != was->size || memcmp(hash, was->hash, sizeof(hash)) != 0) {
			c.kind = CHANGE_MODIFIED;
			return add(l, c, rel);
		}
	}
	/* The copy made directories accessible to the guest, so only modes of files are
	 * compared. */
	if (S_ISREG(now->mode) && (now->mode & 0777) != (was->mode & 0777)) {
		c.kind = CHANGE_MODE;
		return add(l, c, rel);
	}
	return 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct change *)a)->rel, ((const struct change *)b)->rel);
}

static int add_deleted(struct review *r, struct change_list *l)
{
	for (size_t i = 0; i < r->origin_count; i++) {
		struct change c = { .kind = CHANGE_DELETED, .was = &r->origins[i] };
		int e = r->origins[i].is_seen ? 0 : add(l, c, r->origins[i].rel);
		if (e < 0)
			return e;
	}
	return 0;
}

static int find(struct review *r, int guest_fd, struct change_list *ret)
{
	static const char *const self[] = { "." };
	cleanup_listing struct listing now = { .base_fd = -1 };
	for (size_t i = 0; i < r->origin_count; i++)
		r->origins[i].is_seen = false;
	int e = listing_read(&now, guest_fd, self, 1, true);
	for (size_t i = 1; e == 0 && i < now.count; i++) {
		char rel[PATH_MAX];
		const struct listing_entry *entry = &now.entries[i];
		if (!listing_path(&now, i, sizeof(rel), rel))
			return -ENAMETOOLONG;
		const uint32_t *known = nameset_find(&r->index, rel);
		if (known) {
			e = compare(ret, guest_fd, rel, entry, &r->origins[*known - 1]);
		} else if (S_ISREG(entry->mode) || S_ISDIR(entry->mode) || S_ISLNK(entry->mode)) {
			struct change c = { .mode = entry->mode, .size = entry->size };
			e = add(ret, c, rel);
		}
	}
	if (e == 0)
		e = add_deleted(r, ret);
	if (e == 0 && ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), by_path);
	return e;
}

int change_look(struct review *r, int *ret_guest_fd, struct change_list *ret,
		struct cordon_error **reterr)
{
	cleanup_owner struct owner owner = { 0 };
	int e = path_lookup_enter(r->ws, &owner, reterr);

	if (e < 0)
		return e;
	*ret_guest_fd = open_guest(r);
	e = *ret_guest_fd < 0 ? *ret_guest_fd : find(r, *ret_guest_fd, ret);
	return e < 0 ? path_lookup_fail(r->ws, r->guest_dir, e, reterr) : 0;
}
