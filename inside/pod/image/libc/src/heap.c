/* inside/pod/image/libc/src/heap.c - malloc and free: small blocks wait in lists by size in front
 * of musl's heap. */
#include <stdlib.h>

#include "malloc_impl.h"

#define LARGEST 1024 /* bytes of a chunk that may wait */
#define CLASSES (LARGEST / SIZE_ALIGN + 1)
#define DEPTH 64 /* of a list: what a program frees beyond that goes back to the heap */

/* A shell frees what it will ask for again at once: merging and splitting chunks each time took a
 * third of a loop's time. There is one thread, and handlers run between calls, so nothing here
 * needs a lock. */
struct idle {
	struct idle *next;
};

static struct idle *idle[CLASSES];
static unsigned char depth[CLASSES];

void *malloc(size_t n)
{
	size_t class = (n + OVERHEAD + SIZE_ALIGN - 1) / SIZE_ALIGN;

	if (n <= LARGEST - OVERHEAD && idle[class]) {
		struct idle *block = idle[class];

		idle[class] = block->next;
		depth[class]--;
		return block;
	}
	return __libc_malloc_impl(n);
}

void *__libc_malloc(size_t n)
{
	return malloc(n);
}

void free(void *p)
{
	struct chunk *chunk = MEM_TO_CHUNK(p);
	struct idle *block = p;
	size_t class;

	if (!p)
		return;
	class = CHUNK_SIZE(chunk) / SIZE_ALIGN;
	if (class < CLASSES && depth[class] < DEPTH && !IS_MMAPPED(chunk)) {
		block->next = idle[class];
		idle[class] = block;
		depth[class]++;
		return;
	}
	__libc_free(p);
}
