/* inside/lib/pages.c - see pages.h. */
#include "inside/lib/pages.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U /* Linux 6.3 */
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

enum { PAGE = 4096, HUGE = 2 << 20, FULL = 480, REGION = 512 << 20 };
enum { HOLE_MAX = 16384, HOLE_FINE = 1040, HOLES = 20000 };

/* A line of /proc/self/maps ("START-END MODE OFFSET DEVICE INODE NAME") of writable memory without
 * a file. */
static int is_ours(const char *line, uintptr_t *ret_start, uintptr_t *ret_end)
{
	char *at = NULL;
	const char *inode;

	*ret_start = strtoul(line, &at, 16);
	if (*at != '-')
		return 0;
	*ret_end = strtoul(at + 1, &at, 16);
	inode = strncmp(at, " rw-p ", 6) == 0 ? strchr(at + 6, ' ') : NULL;
	inode = inode ? strchr(inode + 1, ' ') : NULL;
	return inode && strtoul(inode, NULL, 10) == 0 && !strstr(inode, "[stack]");
}

static void *holes; /* what fills them, chained */

void pages_fill_holes(void)
{
	/* The top of the heap, from which nothing was allocated yet. */
	struct mallinfo2 info = mallinfo2();
	uintptr_t last = (uintptr_t)sbrk(0) - info.keepcost;
	unsigned count = 0;

	for (size_t size = HOLE_MAX; size >= 16; size -= size > HOLE_FINE ? 256 : 16) {
		void **p = malloc(size);

		while (p && (uintptr_t)p < last && count++ < HOLES) {
			*p = holes; /* it stays where it is, for ever */
			holes = p;
			p = malloc(size);
		}
		free(p);
	}
}

/* Nearly all of it is resident; the rest would be filled with zeros. */
static int is_full(uintptr_t at)
{
	unsigned char pages[HUGE / PAGE];
	unsigned count = 0;

	if (mincore((void *)at, HUGE, pages) != 0)
		return 0;
	for (unsigned i = 0; i < HUGE / PAGE; i++)
		count += pages[i] & 1;
	return count >= FULL;
}

void pages_collapse(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	uintptr_t start, end;

	while (f && fgets(line, sizeof(line), f)) {
		if (!is_ours(line, &start, &end))
			continue;
		start = (start + HUGE - 1) & ~(uintptr_t)(HUGE - 1);
		for (uintptr_t at = start; at + HUGE <= end + HUGE; at += HUGE) {
			if (at + HUGE <= end && is_full(at))
				continue;
			/* In one call, because each call waits once for every CPU. */
			if (at > start)
				(void)madvise((void *)start, at - start, MADV_COLLAPSE);
			start = at + HUGE;
		}
	}
	if (f)
		fclose(f);
}

/* Ranges that were mapped before anything was imported: the interpreter's own, which returns memory
 * only with munmap. Allocators of packages may rely on memory being zero after MADV_DONTNEED, which
 * is not true for a mapped file. */
enum { RANGES = 256, IMAGE_LEAST = 16 * PAGE, IMAGE_PIECE = 8 << 20 };
struct range {
	uintptr_t start, end;
};
static struct {
	struct range list[RANGES];
	unsigned count;
} early;

static void note_early(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	struct range r;

	while (f && fgets(line, sizeof(line), f) && early.count < RANGES)
		if (is_ours(line, &r.start, &r.end))
			early.list[early.count++] = r;
	if (f)
		fclose(f);
}

/* One region for the arenas of an interpreter's allocator, side by side. Otherwise they would lie
 * between libraries, where no huge page can begin. */
static struct {
	char *base, *next, *open, *end; /* open: not writable yet from here on */
} region;

static void *take(void *context, size_t size)
{
	(void)context;
	size = (size + 4095) & ~(size_t)4095;
	if (!region.next || size > (size_t)(region.end - region.next))
		return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = region.next, *until = at + size;
	if (until > region.open) {
		size_t more = ((size_t)(until - region.open) + HUGE - 1) & ~(size_t)(HUGE - 1);

		if (mprotect(region.open, more, PROT_READ | PROT_WRITE) != 0)
			return MAP_FAILED;
		region.open += more;
	}
	region.next = until;
	return at;
}

static void *arena_take(void *context, size_t size)
{
	void *p = take(context, size);

	return p == MAP_FAILED ? NULL : p;
}

/* Its addresses are not reused. */
static void arena_give(void *context, void *at, size_t size)
{
	(void)context;
	(void)munmap(at, size);
}

/* A mapping that can be moved into a file, and the part of it that was used. */
static bool is_fit(const char *line, struct range *ret)
{
	char *at = NULL;
	uintptr_t open_at = ((uintptr_t)region.next + PAGE - 1) & ~(uintptr_t)(PAGE - 1);

	ret->start = strtoul(line, &at, 16);
	ret->end = *at == '-' ? strtoul(at + 1, &at, 16) : 0;
	if (ret->end < ret->start + IMAGE_LEAST || strncmp(at, " rw-p ", 6) != 0)
		return false;
	const char *inode = strchr(at + 6, ' ');
	inode = inode ? strchr(inode + 1, ' ') : NULL;
	if (!inode || strstr(line, "[stack]"))
		return false;
	if (strtoul(inode, NULL, 10) != 0 || strstr(line, "[heap]"))
		return true;
	if (ret->start >= (uintptr_t)region.base && ret->start < open_at) {
		if (ret->end > open_at)
			ret->end = open_at;
		return true;
	}
	for (unsigned i = 0; i < early.count; i++)
		if (early.list[i].start == ret->start && ret->end == early.list[i].end)
			return true;
	return false;
}

/* Piece by piece, so that little of it exists twice at any time. */
static void put_into_file(const struct range *r)
{
	int fd = memfd_create("cordon-image", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	for (uintptr_t at = r->start; fd >= 0 && at < r->end; at += IMAGE_PIECE) {
		size_t len = r->end - at < IMAGE_PIECE ? r->end - at : IMAGE_PIECE;

		/* Not write(): a sanitizer would complain of the gaps between variables. */
		if (syscall(SYS_write, fd, at, len) != (long)len ||
		    mmap((void *)at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd,
			 (off_t)(at - r->start)) == MAP_FAILED)
			break;
	}
	if (fd < 0)
		return;
	/* Every session maps it: without the seals, none of them may start. */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
		perror("cordon: the template's memory could not be sealed");
		_exit(1);
	}
	close(fd);
}

/* Exceeding the limit would raise SIGXFSZ. */
static bool is_within_file_limit(const struct range *r)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	       (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= r->end - r->start);
}

void pages_put_into_files(void)
{
	struct range list[RANGES];
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned count = 0;
	char line[512];

	while (f && count < RANGES && fgets(line, sizeof(line), f))
		if (is_fit(line, &list[count]))
			count++;
	if (f)
		fclose(f);
	/* From here on only the stack is written. */
	for (unsigned i = 0; i < count; i++)
		if (is_within_file_limit(&list[i]))
			put_into_file(&list[i]);
}

/* The layout of CPython's structure. */
struct arena_allocator {
	void *context;
	void *(*take)(void *context, size_t size);
	void (*give)(void *context, void *at, size_t size);
};

__attribute__((visibility("default"))) void
cordon_guest_arenas(void (*set)(struct arena_allocator *allocator));

void cordon_guest_arenas(void (*set)(struct arena_allocator *allocator))
{
	struct arena_allocator allocator = { NULL, arena_take, arena_give };
	char *at =
		mmap(NULL, REGION, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	note_early();
	if (at == MAP_FAILED)
		return;
	region.end = at + REGION;
	region.base = region.next = region.open =
		(char *)(((uintptr_t)at + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	set(&allocator);
}
