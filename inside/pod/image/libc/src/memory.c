/* inside/pod/image/libc/src/memory.c - mmap over linear memory: page runs, with the kernel's
 * mapping on top. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "door.h"
#include "libc.h"
#include "syscall.h"

#define PAGE 4096u
#define WASM_PAGE 65536u

/* A free run keeps its own length in its first bytes; runs are in order of address and
 * never touch. */
struct run {
	struct run *next;
	size_t size;
};

static struct run *runs;
static uintptr_t top; /* end of what was ever handed out; above it memory is untouched */

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) & ~(to - 1);
}

static void give(uintptr_t at, size_t size)
{
	struct run **p = &runs, *run = (struct run *)at;

	while (*p && (uintptr_t)*p < at && (uintptr_t)*p + (*p)->size < at)
		p = &(*p)->next;
	if (*p && (uintptr_t)*p < at && (uintptr_t)*p + (*p)->size == at) {
		run = *p;
		run->size += size;
	} else {
		run->size = size;
		run->next = *p;
		*p = run;
	}
	if (run->next && (uintptr_t)run + run->size == (uintptr_t)run->next) {
		struct run *after = run->next;

		run->size += after->size;
		run->next = after->next;
		memset(after, 0, sizeof *after); /* free memory is zero but for the headers */
	}
}

static void *take_free(size_t size)
{
	for (struct run **p = &runs; *p; p = &(*p)->next) {
		struct run *run = *p;

		if (run->size < size)
			continue;
		if (run->size == size) {
			*p = run->next;
		} else {
			/* From the far end: the header stays where it is. */
			run->size -= size;
			run = (struct run *)((uintptr_t)run + run->size);
		}
		memset(run, 0, sizeof *run);
		return run;
	}
	return 0;
}

static void *take_new(size_t size)
{
	uintptr_t have = (uintptr_t)__builtin_wasm_memory_size(0) * WASM_PAGE, at;

	if (!top)
		top = have;
	at = top;
	if (size > have - at) {
		size_t grow = round_up(size - (have - at), WASM_PAGE) / WASM_PAGE;

		if (__builtin_wasm_memory_grow(0, grow) == (size_t)-1)
			return 0;
	}
	top = at + size;
	return (void *)at;
}

/* Takes what follows a run that is in use, so that it grows where it is. */
static int take_after(uintptr_t end, size_t size)
{
	struct run **p = &runs, *run;

	if (end == top)
		return take_new(size) != 0;
	while (*p && (uintptr_t)*p < end)
		p = &(*p)->next;
	run = *p;
	if ((uintptr_t)run != end || run->size < size)
		return 0;
	if (run->size == size) {
		*p = run->next;
	} else {
		struct run *rest = (struct run *)(end + size);

		rest->next = run->next;
		rest->size = run->size - size;
		*p = rest;
	}
	memset(run, 0, sizeof *run);
	return 1;
}

static void *take(size_t size)
{
	void *p = take_free(size);

	return p ? p : take_new(size);
}

void *__mmap(void *start, size_t len, int prot, int flags, int fd, off_t off)
{
	void *p;
	long r;

	if (!len || off % PAGE || (flags & MAP_FIXED)) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	if (len > 0x7fffffff - PAGE || !(p = take(round_up(len, PAGE)))) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	len = round_up(len, PAGE);
	if ((flags & MAP_ANON) && (flags & MAP_TYPE) == MAP_PRIVATE)
		return p;
	r = __pod_syscall(SYS_mmap, (uintptr_t)p, len, prot, flags, fd, off);
	if (r < 0 && r > -4096) {
		give((uintptr_t)p, len);
		errno = -r;
		return MAP_FAILED;
	}
	return p;
}

int __munmap(void *start, size_t len)
{
	uintptr_t at = (uintptr_t)start;

	if (at % PAGE || !len) {
		errno = EINVAL;
		return -1;
	}
	len = round_up(len, PAGE);
	/* Back to private zeroes, whatever was mapped there. */
	__pod_door(POD_RELEASE, at, len, 0, 0, 0, 0);
	give(at, len);
	return 0;
}

void *__mremap(void *old, size_t old_len, size_t new_len, int flags, ...)
{
	void *p;

	old_len = round_up(old_len, PAGE);
	new_len = round_up(new_len, PAGE);
	if (new_len == old_len)
		return old;
	if (new_len < old_len) {
		__munmap((char *)old + new_len, old_len - new_len);
		return old;
	}
	/* A shared mapping cannot be told from a private one here, so only malloc's own
	 * large blocks, which say that they may move, grow. Where they are, if they can: a
	 * buffer that grows by pages would be copied for each of them. */
	if ((flags & MREMAP_MAYMOVE) && take_after((uintptr_t)old + old_len, new_len - old_len))
		return old;
	if (!(flags & MREMAP_MAYMOVE) ||
	    (p = __mmap(0, new_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0)) ==
		    MAP_FAILED) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	memcpy(p, old, old_len);
	__munmap(old, old_len);
	return p;
}

int mprotect(void *start, size_t len, int prot)
{
	return 0;
}

weak_alias(__mmap, mmap);
weak_alias(__munmap, munmap);
weak_alias(__mremap, mremap);

/* malloc's heap grows by runs too: SYS_brk is answered with an error and it maps. */
void *sbrk(intptr_t inc)
{
	errno = ENOMEM;
	return (void *)-1;
}

/* The engine copies and fills at native speed; these become single instructions. */
void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	return __builtin_memmove(to, from, n);
}

void *memmove(void *to, const void *from, size_t n)
{
	return __builtin_memmove(to, from, n);
}

void *memset(void *to, int c, size_t n)
{
	return __builtin_memset(to, c, n);
}
