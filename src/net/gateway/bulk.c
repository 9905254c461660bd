/* net/gateway/bulk.c - see bulk.h. */
#include "net/gateway/bulk.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { ROUNDS = 8 }; /* per call; the loop reports what remains */

bool bulk_open(struct bulk *b, struct bulk_pool *pool)
{
	if (b->data)
		return true;
	if (pool->used == BULK_MAX)
		return false;
	b->data = pool->spare ? pool->spare : malloc(BULK_SIZE);
	pool->spare = NULL;
	if (!b->data)
		return false;
	b->pool = pool;
	pool->used++;
	return true;
}

void bulk_close(struct bulk *b)
{
	if (!b->data)
		return;
	b->pool->used--;
	if (b->pool->spare)
		free(b->data);
	else
		b->pool->spare = b->data;
	*b = (struct bulk){ 0 };
}

void bulk_pool_done(struct bulk_pool *p)
{
	free(p->spare);
	*p = (struct bulk_pool){ 0 };
}

bool bulk_is_ready(const struct stream *from, const struct stream *to)
{
	return from->in.len == 0 && to->out.len == 0 && from->fd >= 0 && to->fd >= 0;
}

static size_t take(struct bulk *b, struct stream *from, uint64_t max)
{
	size_t want = max < BULK_SIZE ? (size_t)max : BULK_SIZE;

	if (b->held > 0 || from->is_eof || from->is_broken || !from->is_readable || want == 0)
		return 0;
	ssize_t n = recv(from->fd, b->data, want, 0);
	if (n > 0) {
		b->start = 0;
		b->held = (size_t)n;
		from->bytes_in += (uint64_t)n;
		return (size_t)n;
	}
	if (n == 0)
		from->is_eof = true;
	else if (errno == EAGAIN)
		from->is_readable = false;
	else if (errno != EINTR)
		from->is_broken = true;
	return 0;
}

static bool give(struct bulk *b, struct stream *to)
{
	ssize_t n = send(to->fd, b->data + b->start, b->held, MSG_NOSIGNAL);
	if (n > 0) {
		b->start += (size_t)n;
		b->held -= (size_t)n;
		to->bytes_out += (uint64_t)n;
		return true;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		to->is_broken = true;
	return false;
}

size_t bulk_move(struct bulk *b, struct stream *from, struct stream *to, uint64_t max,
		 bool *ret_progress)
{
	bool was_eof = from->is_eof;
	size_t taken = 0;

	for (int i = 0; i < ROUNDS; i++) {
		size_t n = take(b, from, max - taken);
		taken += n;
		if (!(b->held > 0 && give(b, to)) && n == 0)
			break;
	}
	/* Bytes that are still to be moved are reported by the loop, so they are not progress for
	 * the caller. */
	*ret_progress |= from->is_eof != was_eof || from->is_broken || to->is_broken ||
			 (taken == max && b->held == 0);
	from->is_paused = to->has_bulk = b->held > 0;
	if (b->held == 0)
		bulk_close(b);
	return taken;
}
