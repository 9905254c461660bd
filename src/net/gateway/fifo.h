/* net/gateway/fifo.h - a bounded byte queue whose contents are contiguous. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { FIFO_SIZE = 65536 };

/* Bytes in one piece. The memory is there only while there are bytes. Zero is empty. */
struct fifo {
	char *data;
	size_t start, len;
};

const char *fifo_bytes(const struct fifo *q);
size_t fifo_room(const struct fifo *q);
bool fifo_add(struct fifo *q, const void *bytes, size_t len); /* false: no room, or no memory */
/* Room for len bytes in one piece at the end, to be counted in q->len by whoever fills it; NULL
 * when there is none. */
char *fifo_tail(struct fifo *q, size_t len);
void fifo_drop(struct fifo *q, size_t len); /* from the front */
/* Moves all of src into dst, or as much as fits; returns how much. Whole queues change hands
 * without a copy. */
size_t fifo_move(struct fifo *dst, struct fifo *src);
void fifo_done(struct fifo *q);
