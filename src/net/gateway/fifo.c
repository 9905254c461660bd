/* net/gateway/fifo.c - see fifo.h. */
#include "net/gateway/fifo.h"

#include <stdlib.h>
#include <string.h>

const char *fifo_bytes(const struct fifo *q)
{
	return q->data ? q->data + q->start : "";
}

size_t fifo_room(const struct fifo *q)
{
	return FIFO_SIZE - q->len;
}

void fifo_done(struct fifo *q)
{
	free(q->data);
	*q = (struct fifo){ 0 };
}

char *fifo_tail(struct fifo *q, size_t len)
{
	if (len > fifo_room(q))
		return NULL;
	if (!q->data) {
		q->data = malloc(FIFO_SIZE);
		q->start = 0;
	}
	if (q->data && q->start + q->len + len > FIFO_SIZE) {
		memmove(q->data, q->data + q->start, q->len);
		q->start = 0;
	}
	return q->data ? q->data + q->start + q->len : NULL;
}

bool fifo_add(struct fifo *q, const void *bytes, size_t len)
{
	char *tail = fifo_tail(q, len);

	if (!tail)
		return false;
	memcpy(tail, bytes, len);
	q->len += len;
	return true;
}

void fifo_drop(struct fifo *q, size_t len)
{
	q->start += len;
	q->len -= len;
	if (q->len == 0)
		fifo_done(q);
}

size_t fifo_move(struct fifo *dst, struct fifo *src)
{
	size_t n = src->len;

	if (n == 0)
		return 0;
	if (dst->len == 0) {
		fifo_done(dst);
		*dst = *src;
		*src = (struct fifo){ 0 };
		return n;
	}
	n = n < fifo_room(dst) ? n : fifo_room(dst);
	if (n == 0 || !fifo_add(dst, fifo_bytes(src), n))
		return 0;
	fifo_drop(src, n);
	return n;
}
