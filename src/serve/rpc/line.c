/* serve/rpc/line.c - see line.h. */
#include "serve/rpc/line.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"

enum { CHUNK = 65536, PARTS_MAX = 15, STUCK_MS = 30000 };

void linein_init(struct linein *in, int fd, int watch_fd, size_t max)
{
	*in = (struct linein){ .fd = fd, .watch_fd = watch_fd, .max = max };
	/* Room for a line and for what one read may return after it. */
	buf_init(&in->buf, max + 2 * (size_t)CHUNK);
}

void linein_done(struct linein *in)
{
	buf_done(&in->buf);
}

/* Waits for input or its end. False: nobody reads the answers any more, or poll fails. */
static bool wait_input(const struct linein *in)
{
	struct pollfd p[2] = { { .fd = in->fd, .events = POLLIN }, { .fd = in->watch_fd } };

	for (;;) {
		if (poll(p, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return false;
		}
		if (p[0].revents & (POLLIN | POLLHUP))
			return true;
		if (p[0].revents || (p[1].revents & (POLLERR | POLLNVAL)))
			return false;
	}
}

static bool read_more(struct linein *in)
{
	char *room = wait_input(in) ? buf_reserve(&in->buf, CHUNK) : NULL;
	ssize_t n;

	if (!room)
		return false;
	do
		n = read(in->fd, room, CHUNK);
	while (n < 0 && errno == EINTR);
	in->is_at_end = n == 0;
	if (n <= 0)
		return false;
	buf_commit(&in->buf, (size_t)n);
	return true;
}

/* What comes before the end of the input is a line, even without a newline. */
static bool take_last(struct linein *in, char **ret, size_t *ret_len)
{
	char *end = in->is_at_end && in->buf.len > 0 && !in->is_skipping ? buf_reserve(&in->buf, 1)
									 : NULL;

	if (!end)
		return false;
	*end = '\0';
	*ret = in->buf.data;
	*ret_len = in->used = in->buf.len;
	in->scanned = 0;
	return true;
}

/* Looks for the end of a line in the buffer. */
static bool take_line(struct linein *in, char **ret, size_t *ret_len)
{
	char *data = in->buf.data;
	char *end = in->buf.len > in->scanned
			    ? memchr(data + in->scanned, '\n', in->buf.len - in->scanned)
			    : NULL;

	if (!end) {
		in->scanned = in->buf.len;
		return false;
	}
	*end = '\0';
	*ret = data;
	*ret_len = (size_t)(end - data);
	in->used = *ret_len + 1;
	in->scanned = 0;
	return true;
}

enum line_state linein_next(struct linein *in, char **ret, size_t *ret_len)
{
	buf_consume(&in->buf, in->used);
	in->used = 0;
	for (;;) {
		if (take_line(in, ret, ret_len)) {
			bool was_skipping = in->is_skipping;
			in->is_skipping = false;
			if (!was_skipping && *ret_len <= in->max)
				return LINE_OK;
			if (!was_skipping)
				return LINE_TOO_LONG;
			buf_consume(&in->buf, in->used);
			in->used = 0;
			continue;
		}
		if (in->buf.len > in->max) {
			bool is_first = !in->is_skipping;
			buf_clear(&in->buf);
			in->scanned = 0;
			in->is_skipping = true;
			if (is_first)
				return LINE_TOO_LONG;
		}
		if (!read_more(in))
			return take_last(in, ret, ret_len) ? LINE_OK : LINE_END;
	}
}

void lineout_init(struct lineout *out, int fd)
{
	*out = (struct lineout){ .fd = fd };
	pthread_mutex_init(&out->lock, NULL);
}

void lineout_done(struct lineout *out)
{
	pthread_mutex_destroy(&out->lock);
}

static bool wait_output(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, -1) >= 0 || errno == EINTR;
}

static bool write_all(int fd, struct iovec *v, int count)
{
	while (count > 0) {
		ssize_t n = writev(fd, v, count);
		if (n < 0 && (errno == EINTR || (errno == EAGAIN && wait_output(fd))))
			continue;
		if (n < 0)
			return false;
		size_t left = (size_t)n;
		for (; count > 0 && left >= v->iov_len; v++, count--)
			left -= v->iov_len;
		if (count > 0) {
			v->iov_base = (char *)v->iov_base + left;
			v->iov_len -= left;
		}
	}
	return true;
}

bool lineout_send(struct lineout *out, const struct line_part *parts, size_t count)
{
	struct iovec v[PARTS_MAX + 1];

	if (count > PARTS_MAX)
		return false;
	for (size_t i = 0; i < count; i++)
		v[i] = (struct iovec){ (void *)(uintptr_t)parts[i].text, parts[i].len };
	v[count] = (struct iovec){ (void *)(uintptr_t) "\n", 1 };
	pthread_mutex_lock(&out->lock);
	out->stuck_since_ns = clock_now_ns();
	if (!out->is_broken && !write_all(out->fd, v, (int)count + 1))
		out->is_broken = true;
	out->stuck_since_ns = 0;
	bool good = !out->is_broken;
	pthread_mutex_unlock(&out->lock);
	return good;
}

bool lineout_has_reader(const struct lineout *out)
{
	struct pollfd p = { .fd = out->fd };
	uint64_t since = out->stuck_since_ns;

	if (since && clock_now_ns() - since > STUCK_MS * 1000000ULL)
		return false;
	return poll(&p, 1, 0) <= 0 || !(p.revents & (POLLERR | POLLHUP | POLLNVAL));
}
