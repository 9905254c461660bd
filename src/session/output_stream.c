/* session/output_stream.c - see output_stream.h. The host's memory use does not depend on how much
 * the guest prints. */
#include "session/output_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Most guests print little. Only one that fills the small buffer gets the large one, because its
 * pages cost more memory than the rest of a launch. */
enum {
	SMALL = 4096,
	CHUNK = 256 * 1024,
	PIPE_BYTES = 1 << 20,
	DRAIN_ROUNDS = 64,
	HEAD = 2048, /* of stderr, where no copy is kept for the result */
	TAIL = 8192,
	KEPT_MAX = 1 << 30 /* per stream of a result, even if the policy sets no limit */
};

void output_stream_begin(struct output_stream *s, int fd, const struct stream_options *o)
{
	*s = (struct output_stream){ .fd = fd,
				     .number = o->number,
				     .max_lines = o->max_lines,
				     .max_bytes = o->max_bytes,
				     .keeps = !o->discard,
				     .passes_all = o->passes_all,
				     .fn = o->fn,
				     .arg = o->arg };
	buf_init(&s->kept, o->max_bytes < KEPT_MAX ? o->max_bytes : KEPT_MAX);
}

/* How many of the bytes belong to the first max_lines lines. */
static size_t within_lines(struct output_stream *s, const char *bytes, size_t len)
{
	const char *p = bytes, *end = bytes + len;

	if (s->max_lines == UINT64_MAX)
		return len;
	while (s->lines < s->max_lines && p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		if (!nl)
			return len;
		s->lines++;
		p = nl + 1;
	}
	return (size_t)(p - bytes);
}

static void keep(struct output_stream *s, const char *bytes, size_t len)
{
	size_t take = within_lines(s, bytes, len);

	if (take < len)
		s->is_truncated = true;
	if (take > 0 && buf_add(&s->kept, bytes, take) < 0)
		s->is_truncated = true;
}

/* Keeps the beginning and the end of stderr, which tell what was refused and why the code ended. */
static void sample(struct output_stream *s, const char *bytes, size_t len)
{
	struct buf *b = &s->kept;

	while (s->number == 2 && len > 0) {
		size_t n = len < TAIL ? len : TAIL;

		if (b->len + n > HEAD + 2 * TAIL) {
			memmove(b->data + HEAD, b->data + b->len - TAIL, TAIL);
			b->len = HEAD + TAIL;
			b->data[HEAD - 1] = '\n'; /* the line that is cut here is none */
		}
		if (buf_add(b, bytes, n) < 0)
			return;
		bytes += n;
		len -= n;
	}
}

static void take(struct output_stream *s, const char *bytes, size_t len)
{
	size_t room = (size_t)(s->max_bytes - s->seen);

	if (s->passes_all) { /* what is kept has a limit of its own */
		s->is_truncated |= s->keeps && s->kept.len + len > s->max_bytes;
		if (s->keeps && s->kept.len < s->max_bytes)
			keep(s, bytes,
			     len < s->max_bytes - s->kept.len
				     ? len
				     : (size_t)(s->max_bytes - s->kept.len));
		if (s->fn)
			s->fn(s->number, bytes, len, s->arg);
		return;
	}
	if (len > room) {
		s->is_truncated = true;
		len = room;
	}
	s->seen += len;
	if (s->keeps) {
		keep(s, bytes, len);
	} else { /* only the callback gets the output, so all limits apply to it */
		size_t all = len;
		len = within_lines(s, bytes, all);
		s->is_truncated = s->is_truncated || len < all;
		sample(s, bytes, len);
	}
	/* If a copy is kept as well, the callback also gets lines beyond the line limit. */
	if (s->fn && len > 0)
		s->fn(s->number, bytes, len, s->arg);
}

static int read_into(struct output_stream *s, char *bytes, size_t size, bool *ret_filled)
{
	ssize_t n = read(s->fd, bytes, size);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n == 0) {
		s->fd = -1;
		return -1;
	}
	take(s, bytes, (size_t)n);
	*ret_filled = (size_t)n == size;
	return 1;
}

static __attribute__((noinline)) int read_much(struct output_stream *s)
{
	char bytes[CHUNK];
	bool filled;

	/* A larger pipe means fewer wake-ups for a guest that prints much. It may fail with
	 * EPERM. */
	if (!s->is_wide)
		(void)fcntl(s->fd, F_SETPIPE_SZ, PIPE_BYTES);
	s->is_wide = true;
	return read_into(s, bytes, sizeof(bytes), &filled);
}

int output_stream_read(struct output_stream *s)
{
	char bytes[SMALL];
	bool filled = false;

	if (s->fd < 0)
		return -1;
	int r = read_into(s, bytes, sizeof(bytes), &filled);
	/* Ignore the second result: something was read, and an end of file is returned by the next
	 * call. */
	if (filled)
		(void)read_much(s);
	return r;
}

void output_stream_drain(struct output_stream *s)
{
	/* Bounded, so that a child that keeps printing cannot delay the result. */
	for (int i = 0; i < DRAIN_ROUNDS && output_stream_read(s) > 0; i++)
		;
}

void output_stream_trim(struct output_stream *s)
{
	struct buf *b = &s->kept;
	size_t tail = 0; /* bytes of the last character that are there */

	if (!s->is_truncated || b->len == 0)
		return;
	while (tail < 3 && tail + 1 < b->len &&
	       ((unsigned char)b->data[b->len - 1 - tail] & 0xc0) == 0x80)
		tail++;
	unsigned char lead = (unsigned char)b->data[b->len - 1 - tail];
	size_t whole = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
	if (whole > tail + 1)
		b->data[b->len -= tail + 1] = '\0';
}
