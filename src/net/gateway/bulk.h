/* net/gateway/bulk.h - sends large bodies through one large buffer and bypasses the queues. This is
 * a quarter faster than splice(): a pipe saves a copy, but delivers the bytes in small pieces,
 * which costs more. */
#pragma once

#include "net/gateway/stream.h"

enum {
	BULK_FROM = 256 << 10, /* smaller bodies use the queues */
	BULK_SIZE = 768 << 10, /* most of an L2 cache; larger is slower again */
	BULK_MAX = 16,         /* buffers in total; a connection without one uses the queues */
};

/* Shared by all connections. Zero: empty. */
struct bulk_pool {
	char *spare; /* kept for reuse, so that a single busy connection does not allocate */
	size_t used;
};

/* Of one connection, which has a buffer only while that holds bytes. Zero: closed. */
struct bulk {
	struct bulk_pool *pool;
	char *data;
	size_t start, held;
};

/* Both must be sockets without TLS, with empty queues. */
bool bulk_is_ready(const struct stream *from, const struct stream *to);
/* False: no buffer is available. */
bool bulk_open(struct bulk *b, struct bulk_pool *pool);
/* While bytes are held, `from` is not read, only `to` is written. Moves at most max bytes, and not
 * all in one call, so that other connections get their turn. Returns how many it read. */
size_t bulk_move(struct bulk *b, struct stream *from, struct stream *to, uint64_t max,
		 bool *ret_progress);
void bulk_close(struct bulk *b);
void bulk_pool_done(struct bulk_pool *p);
