/* net/bulk.h - large bodies pass through a pipe in the kernel, without being copied through us. */
#pragma once

#include "net/stream.h"

enum { BULK_FROM = 256 << 10, BULK_PIPE = 512 << 10 };

/* Zero is closed. */
struct bulk {
	int read_fd, write_fd;
	size_t held, cap;
};

/* Both must be plain sockets, with empty queues on the way. While bytes are held, from waits and to
 * is written. Takes at most max from from; returns how many it took. */
size_t bulk_move(struct bulk *b, struct stream *from, struct stream *to, uint64_t max,
		 bool *ret_progress);
bool bulk_is_ready(const struct stream *from, const struct stream *to);
void bulk_close(struct bulk *b);
