/* files/content.c - see content.h. */
#include "files/content.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"

enum { MAP_FROM = 2 * 1024 * 1024 }; /* above this, huge pages are worth it */

struct content *content_ref(struct content *b)
{
	b->refs++;
	return b;
}

struct content *content_unref(struct content *b)
{
	if (!b || --b->refs)
		return NULL;
	if (b->is_mapped)
		(void)munmap(b->data, b->len);
	else
		free(b->data);
	free(b->extents);
	free(b);
	return NULL;
}

static void content_unrefp(struct content **b)
{
	*b = content_unref(*b);
}
#define cleanup_content CLEANUP(content_unrefp)

static struct content *new_content(uint64_t size, size_t len)
{
	struct content *b = mem_alloc(sizeof(*b));
	if (!b)
		return NULL;
	b->refs = 1;
	b->size = size;
	b->len = len;
	b->is_mapped = len >= MAP_FROM;
	if (b->is_mapped) {
		b->data =
			mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (b->data != MAP_FAILED) {
			(void)madvise(b->data, len, MADV_HUGEPAGE);
			(void)madvise(b->data, len, MADV_DONTDUMP);
			return b;
		}
		b->is_mapped = false;
		b->data = NULL;
	} else {
		b->data = malloc(len ? len : 1);
	}
	return b->data ? b : content_unref(b);
}

int content_from_bytes(const char *bytes, size_t len, struct content **ret)
{
	struct content *b = new_content(len, len);
	if (!b)
		return -ENOMEM;
	memcpy(b->data, bytes, len);
	*ret = b;
	return 0;
}

/* Reads up to len bytes; fewer at the end of the file. Or -errno. */
static ssize_t read_at(int fd, char *bytes, size_t len, uint64_t offset)
{
	size_t done = 0;
	while (done < len) {
		ssize_t n = pread(fd, bytes + done, len - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int write_at(int fd, const char *bytes, size_t len, uint64_t offset)
{
	while (len) {
		ssize_t n = pwrite(fd, bytes, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static bool is_dense(const struct content *b)
{
	return !b->extents && b->len == b->size;
}

/* How many leading bytes equal `like`: whole chunks, or all. */
static ssize_t same_prefix(int fd, const struct content *like, char *scratch)
{
	size_t done = 0;
	while (done < like->len) {
		size_t want = like->len - done < CONTENT_CHUNK ? like->len - done : CONTENT_CHUNK;
		ssize_t n = read_at(fd, scratch, want, done);
		if (n < 0)
			return n;
		if ((size_t)n < want || memcmp(scratch, like->data + done, want) != 0)
			break;
		done += want;
	}
	return (ssize_t)done;
}

static int read_dense(int fd, size_t size, struct content *like, char *scratch, uint64_t max,
		      struct content **ret)
{
	ssize_t same = 0;
	if (like && is_dense(like) && like->size == size) {
		same = same_prefix(fd, like, scratch);
		if (same < 0)
			return (int)same;
		if ((size_t)same == size) {
			*ret = content_ref(like);
			return 0;
		}
	}
	if (size > max)
		return -EDQUOT;
	cleanup_content struct content *b = new_content(size, size);
	if (!b)
		return -ENOMEM;
	if (same)
		memcpy(b->data, like->data, (size_t)same);
	ssize_t n = read_at(fd, b->data + same, size - (size_t)same, (uint64_t)same);
	if (n < 0)
		return (int)n;
	/* The file was truncated meanwhile: the rest reads as zeros, as if it had been extended
	 * again. */
	memset(b->data + same + n, 0, size - (size_t)same - (size_t)n);
	*ret = TAKE_PTR(b);
	return 0;
}

struct extent_list {
	struct content_extent *items;
	size_t count, cap;
	uint64_t total;
};

static void extent_list_done(struct extent_list *l)
{
	free(l->items);
}

static int find_extents(int fd, uint64_t size, struct extent_list *l)
{
	off_t at = 0;
	while ((uint64_t)at < size) {
		off_t data = lseek(fd, at, SEEK_DATA);
		if (data < 0)
			return errno == ENXIO ? 0 : -errno;
		off_t hole = lseek(fd, data, SEEK_HOLE);
		if (hole < 0 || hole <= data)
			return hole < 0 ? -errno : -EIO;
		if ((uint64_t)hole > size)
			hole = (off_t)size;
		if ((uint64_t)data >= size)
			return 0;
		if (l->count == l->cap) {
			size_t cap = l->cap ? l->cap * 2 : 16;
			void *p = mem_grow(l->items, cap, sizeof(*l->items));
			if (!p)
				return -ENOMEM;
			l->items = p;
			l->cap = cap;
		}
		l->items[l->count++] =
			(struct content_extent){ (uint64_t)data, (uint64_t)(hole - data) };
		l->total += (uint64_t)(hole - data);
		at = hole;
	}
	return 0;
}

static bool is_same(const struct content *a, const struct content *b)
{
	return a->size == b->size && a->len == b->len && a->extent_count == b->extent_count &&
	       (!a->extent_count ||
		!memcmp(a->extents, b->extents, a->extent_count * sizeof(*a->extents))) &&
	       !memcmp(a->data, b->data, a->len);
}

static int read_sparse(int fd, uint64_t size, struct content *like, uint64_t max,
		       struct content **ret)
{
	CLEANUP(extent_list_done) struct extent_list l = { 0 };
	int r = find_extents(fd, size, &l);
	if (r < 0)
		return r;
	if (l.total > max)
		return -EDQUOT;
	cleanup_content struct content *b = new_content(size, (size_t)l.total);
	if (!b)
		return -ENOMEM;
	size_t at = 0;
	for (size_t i = 0; i < l.count; i++) {
		ssize_t n = read_at(fd, b->data + at, (size_t)l.items[i].len, l.items[i].offset);
		if (n < 0)
			return (int)n;
		memset(b->data + at + n, 0, (size_t)l.items[i].len - (size_t)n);
		at += (size_t)l.items[i].len;
	}
	b->extent_count = l.count;
	b->extents = l.count ? TAKE_PTR(l.items) : mem_alloc(sizeof(*b->extents));
	if (!b->extents)
		return -ENOMEM;
	*ret = like && is_same(like, b) ? content_ref(like) : TAKE_PTR(b);
	return 0;
}

int content_read(int fd, uint64_t size, uint64_t blocks, struct content *like, char *scratch,
		 uint64_t max, struct content **ret)
{
	if (blocks * 512 < size)
		return read_sparse(fd, size, like, max, ret);
	return read_dense(fd, (size_t)size, like, scratch, max, ret);
}

static int sync_dense(const struct content *b, int fd, uint64_t current_size, char *scratch)
{
	size_t done = 0;
	while (done < b->len && done < current_size) {
		size_t want = b->len - done < CONTENT_CHUNK ? b->len - done : CONTENT_CHUNK;
		ssize_t n = read_at(fd, scratch, want, done);
		if (n < 0)
			return (int)n;
		if ((size_t)n < want || memcmp(scratch, b->data + done, want) != 0) {
			int r = write_at(fd, b->data + done, want, done);
			if (r < 0)
				return r;
		}
		done += want;
	}
	return done < b->len ? write_at(fd, b->data + done, b->len - done, done) : 0;
}

int content_sync(const struct content *b, int fd, uint64_t current_size, char *scratch)
{
	if (is_dense(b)) {
		int r = sync_dense(b, fd, current_size, scratch);
		if (r == 0 && current_size != b->size && ftruncate(fd, (off_t)b->size))
			r = -errno;
		return r;
	}
	if ((current_size && ftruncate(fd, 0)) || ftruncate(fd, (off_t)b->size))
		return -errno;
	size_t at = 0;
	for (size_t i = 0; i < b->extent_count; i++) {
		int r = write_at(fd, b->data + at, (size_t)b->extents[i].len, b->extents[i].offset);
		if (r < 0)
			return r;
		at += (size_t)b->extents[i].len;
	}
	return 0;
}
