/* inside/pod/runtime/wasi_dir.c - lists a directory for a WASI program. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/wasi.h"

#include <dirent.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LISTING 32768
#define ENTRY 24 /* bytes before a name */

struct listing { /* the guest's buffer */
	uint8_t *to;
	uint32_t size, used;
};

struct kernel_entry { /* of getdents64 */
	uint64_t ino, next;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

static uint8_t type_of(uint8_t type)
{
	const struct stat st = { .st_mode = DTTOIF(type) };

	return (uint8_t)wasi_type_of(&st);
}

static void put(struct listing *l, const void *from, size_t n)
{
	size_t room = l->size - l->used;

	n = n < room ? n : room;
	memcpy(l->to + l->used, from, n);
	l->used += (uint32_t)n;
}

/* The last entry may be cut off: the program then asks again from the entry before it. */
static void put_entry(struct listing *l, const struct kernel_entry *e)
{
	uint8_t head[ENTRY] = { 0 };
	uint32_t n = (uint32_t)strlen(e->name);

	memcpy(head, &e->next, 8);
	memcpy(head + 8, &e->ino, 8);
	memcpy(head + 16, &n, 4);
	head[20] = type_of(e->type);
	put(l, head, sizeof head);
	put(l, e->name, n);
}

/* One buffer from the kernel: its bytes, 0 at the end, or a negative errno. */
static int64_t put_some(struct w2c_sys *p, const struct wasi_fd *f, struct listing *l)
{
	uint64_t at;
	int64_t n;

	wasi_clear(p);
	at = wasi_note(p, NULL, LISTING);
	n = wasi_door(p, SYS_getdents64, (uint64_t)f->fd, at, LISTING, 0);
	for (int64_t i = 0; i < n && l->used < l->size;) {
		const struct kernel_entry *e = wasi_noted(p, at + (uint64_t)i);

		put_entry(l, e);
		i += e->bytes;
	}
	return n;
}

WASI_FN(fd_readdir)
{
	struct wasi_fd *f;
	uint32_t e = wasi_find(p, a[0], WASI_FD_READDIR, &f);
	struct listing l = { .size = (uint32_t)a[2] };
	int64_t n;

	if (e)
		return e;
	l.to = wasi_at(p, a[1], l.size);
	if (!l.to || !wasi_at(p, a[4], 4))
		return WASI_FAULT;
	/* A cookie is the kernel's offset after an entry. */
	n = wasi_door(p, SYS_lseek, (uint64_t)f->fd, a[3], SEEK_SET, 0);
	if (n < 0)
		return wasi_error(n);
	do {
		n = put_some(p, f, &l);
	} while (n > 0 && l.used < l.size);
	if (n < 0)
		return wasi_error(n);
	return wasi_put32(p, a[4], l.used) ? WASI_OK : WASI_FAULT;
}
