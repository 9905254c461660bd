/* net/bulk.c - large bodies pass through a pipe in the kernel. */
#include "net/bulk.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static bool open_pipe(struct bulk *b)
{
	int fds[2];

	if (b->cap)
		return true;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	/* A larger one may be refused (pipe-user-pages-soft): the usual one does too. */
	int size = fcntl(fds[1], F_SETPIPE_SZ, BULK_PIPE);
	if (size < 0)
		size = fcntl(fds[1], F_GETPIPE_SZ);
	b->read_fd = fds[0];
	b->write_fd = fds[1];
	b->cap = size > 0 ? (size_t)size : 4096;
	return true;
}

void bulk_close(struct bulk *b)
{
	if (!b->cap)
		return;
	(void)close(b->read_fd);
	(void)close(b->write_fd);
	*b = (struct bulk){ 0 };
}

bool bulk_is_ready(const struct stream *from, const struct stream *to)
{
	return from->in.len == 0 && to->out.len == 0 && from->fd >= 0 && to->fd >= 0;
}

static size_t take(struct bulk *b, struct stream *from, uint64_t max)
{
	size_t want = b->cap - b->held;

	if (from->is_eof || from->is_broken || !from->is_readable || max == 0 || want == 0)
		return 0;
	want = want < max ? want : (size_t)max;
	ssize_t n =
		splice(from->fd, NULL, b->write_fd, NULL, want, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n > 0) {
		b->held += (size_t)n;
		from->bytes_in += (uint64_t)n;
		return (size_t)n;
	}
	if (n == 0)
		from->is_eof = true;
	else if (errno == EAGAIN) /* nothing there, or the pipe is full, which ends by writing */
		from->is_readable = b->held > 0;
	else if (errno != EINTR)
		from->is_broken = true;
	return 0;
}

static bool give(struct bulk *b, struct stream *to)
{
	ssize_t n = splice(b->read_fd, NULL, to->fd, NULL, b->held,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE);
	if (n > 0) {
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

	if (!open_pipe(b)) {
		from->is_broken = true;
		return 0;
	}
	for (;;) {
		size_t n = take(b, from, max - taken);
		taken += n;
		bool gave = b->held > 0 && give(b, to);
		if (n == 0 && !gave)
			break;
		*ret_progress = true;
	}
	*ret_progress |= from->is_eof != was_eof || from->is_broken || to->is_broken;
	from->is_paused = to->has_bulk = b->held > 0;
	return taken;
}
