/* net/gateway/bulk.h - sends large bodies through one large buffer, past the queues. This is a
 * quarter faster than splice(): a pipe saves a copy, but gives the client its bytes in small
 * pieces, which costs more. */
#pragma once

#include "net/gateway/stream.h"

enum {
	BULK_FROM = 256 << 10, /* less goes through the queues */
	BULK_SIZE = 768 << 10, /* most of a second cache: more is slower again */
	BULK_MAX = 16,         /* buffers in all; who gets none uses the queues */
};

/* Of all connections. Zero is empty. */
struct bulk_pool {
	char *spare; /* the buffer that goes around while one connection is busy */
	size_t used;
};

/* Of one connection; it has a buffer while there are bytes in it. Zero is closed. */
struct bulk {
	struct bulk_pool *pool;
	char *data;
	size_t start, held;
};

/* Both must be plain sockets, with empty queues on the way. */
bool bulk_is_ready(const struct stream *from, const struct stream *to);
/* False: there is no buffer for it. */
bool bulk_open(struct bulk *b, struct bulk_pool *pool);
/* While bytes are held, `from` is not read and `to` is written. Takes at most max bytes, and not
 * everything at once, so that other connections get their turn. Returns how many it took. */
size_t bulk_move(struct bulk *b, struct stream *from, struct stream *to, uint64_t max,
		 bool *ret_progress);
void bulk_close(struct bulk *b);
void bulk_pool_done(struct bulk_pool *p);
