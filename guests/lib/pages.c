/* guests/lib/pages.c - see pages.h. */
#include "pages.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

enum { PAGE = 4096, HUGE = 2 << 20, FULL = 480, REGION = 512 << 20 };
enum { HOLE_MAX = 16384, HOLE_FINE = 1040, HOLES = 20000 };

/* A line of /proc/self/maps ("START-END MODE OFFSET DEVICE INODE NAME") that is memory of nobody's
 * file and can be written. */
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

void pages_fill_holes(void)
{
	/* The last part of the heap, which nothing was allocated from yet. */
	struct mallinfo2 info = mallinfo2();
	uintptr_t last = (uintptr_t)sbrk(0) - info.keepcost;
	unsigned count = 0;

	for (size_t size = HOLE_MAX; size >= 16; size -= size > HOLE_FINE ? 256 : 16) {
		void *p = malloc(size);

		while (p && (uintptr_t)p < last && count++ < HOLES)
			p = malloc(size); /* the one before stays where it is, for ever */
		free(p);
	}
}

/* Nearly all of it is in memory: what is not would be filled with zeroes. */
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
			/* In one call: each waits for every processor once. */
			if (at > start)
				(void)madvise((void *)start, at - start, MADV_COLLAPSE);
			start = at + HUGE;
		}
	}
	if (f)
		fclose(f);
}

/* One region for the arenas of an interpreter's own allocator, side by side: they would lie between
 * the libraries otherwise, none of them where a huge page could begin. */
static struct {
	char *next, *open, *end; /* open: from here on it cannot be written yet */
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

/* Its place is not used again. */
static void arena_give(void *context, void *at, size_t size)
{
	(void)context;
	(void)munmap(at, size);
}

/* As CPython has it. */
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

	if (at == MAP_FAILED)
		return;
	region.end = at + REGION;
	region.next = region.open = (char *)(((uintptr_t)at + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	set(&allocator);
}
