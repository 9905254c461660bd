/* net/gateway/fifo.h - a bounded byte queue whose contents are contiguous. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { FIFO_SIZE = 65536 };

/* Contiguous bytes. Has memory only while it holds bytes. Zero: empty. */
struct fifo {
	char *data;
	size_t start, len;
};

const char *fifo_bytes(const struct fifo *q);
size_t fifo_room(const struct fifo *q);
bool fifo_add(struct fifo *q, const void *bytes, size_t len); /* false: no room, or no memory */
/* Returns contiguous room for len bytes at the end; the caller fills it and adds to q->len. NULL:
 * no room. */
char *fifo_tail(struct fifo *q, size_t len);
void fifo_drop(struct fifo *q, size_t len); /* from the front */
/* Moves as much of src as fits into dst; returns how much. A whole queue moves without copying. */
size_t fifo_move(struct fifo *dst, struct fifo *src);
void fifo_done(struct fifo *q);
