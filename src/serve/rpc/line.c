/* serve/rpc/line.c - see line.h. */
#include "serve/rpc/line.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/os.h"

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

bool linein_give(struct linein *in, const void *bytes, size_t len)
{
	return buf_add(&in->buf, bytes, len) == 0;
}

void linein_shrink(struct linein *in)
{
	buf_consume(&in->buf, in->used);
	in->used = 0;
	if (in->buf.len > 0)
		return;
	buf_done(&in->buf);
	buf_init(&in->buf, in->max + 2 * (size_t)CHUNK);
}

/* Waits for input or its end, at most ms; 0: for ever. LINE_END: nobody reads the answers any more,
 * or poll fails. */
static enum line_state wait_input(const struct linein *in, int ms)
{
	struct pollfd p[2] = { { .fd = in->fd, .events = POLLIN }, { .fd = in->watch_fd } };

	for (;;) {
		int n = poll(p, 2, ms > 0 ? ms : -1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			return LINE_IDLE;
		if (n > 0 && (p[0].revents & (POLLIN | POLLHUP)))
			return LINE_OK;
		if (n < 0 || p[0].revents || (p[1].revents & (POLLERR | POLLNVAL)))
			return LINE_END;
	}
}

static enum line_state read_more(struct linein *in)
{
	enum line_state state = wait_input(in, in->idle_ms);
	char *room = state == LINE_OK ? buf_reserve(&in->buf, CHUNK) : NULL;
	ssize_t n;

	if (!room)
		return state == LINE_OK ? LINE_END : state;
	do
		n = read(in->fd, room, CHUNK);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return LINE_OK;
	in->is_at_end = n == 0;
	if (n <= 0)
		return LINE_END;
	buf_commit(&in->buf, (size_t)n);
	return LINE_OK;
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
		enum line_state state = read_more(in);
		if (state == LINE_IDLE)
			return state;
		if (state == LINE_END)
			return take_last(in, ret, ret_len) ? LINE_OK : LINE_END;
	}
}

bool linein_read(struct linein *in, void *to, size_t len)
{
	char *at = to;

	buf_consume(&in->buf, in->used);
	in->used = in->scanned = 0;
	size_t ready = in->buf.len < len ? in->buf.len : len;
	if (ready > 0)
		memcpy(at, in->buf.data, ready);
	buf_consume(&in->buf, ready);
	while (ready < len) {
		bool is_there = wait_input(in, in->stall_ms) == LINE_OK;
		ssize_t n = is_there ? read(in->fd, at + ready, len - ready) : 0;
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return false;
		ready += (size_t)n;
	}
	return true;
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

/* False: the reader took nothing for too long. A shut socket ends the input, too. */
static bool wait_output(const struct lineout *out)
{
	struct pollfd p = { .fd = out->fd, .events = POLLOUT };
	int n = poll(&p, 1, out->stall_ms > 0 ? out->stall_ms : -1);

	if (n == 0)
		(void)shutdown(out->fd, SHUT_RDWR);
	return n > 0 || (n < 0 && errno == EINTR);
}

static bool write_all(struct lineout *out, struct iovec *v, int count)
{
	while (count > 0) {
		ssize_t n = writev(out->fd, v, count);
		if (n < 0 && (errno == EINTR || (errno == EAGAIN && wait_output(out))))
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

/* The file's bytes are constant, so a pipe may refer to its pages. */
static bool write_file(struct lineout *out, int fd, uint64_t bytes)
{
	off_t at = 0;

	if (bytes > 0 && !out->is_wide)
		os_pipe_widen(out->fd);
	out->is_wide = out->is_wide || bytes > 0;
	while ((uint64_t)at < bytes) {
		int r = os_send_file(out->fd, fd, &at, bytes - (uint64_t)at);
		if (r == -EINTR || (r == -EAGAIN && wait_output(out)))
			continue;
		if (r < 0)
			return false;
		out->stuck_since_ns = clock_now_ns();
	}
	return true;
}

bool lineout_send(struct lineout *out, const struct line_part *parts, size_t count)
{
	return lineout_send_file(out, parts, count, -1, 0);
}

bool lineout_send_file(struct lineout *out, const struct line_part *parts, size_t count, int fd,
		       uint64_t bytes)
{
	struct iovec v[PARTS_MAX + 1];

	if (count > PARTS_MAX)
		return false;
	for (size_t i = 0; i < count; i++)
		v[i] = (struct iovec){ (void *)(uintptr_t)parts[i].text, parts[i].len };
	v[count] = (struct iovec){ (void *)(uintptr_t) "\n", 1 };
	pthread_mutex_lock(&out->lock);
	out->stuck_since_ns = clock_now_ns();
	if (!out->is_broken && (!write_all(out, v, (int)count + 1) || !write_file(out, fd, bytes)))
		out->is_broken = true;
	out->stuck_since_ns = 0;
	bool good = !out->is_broken;
	pthread_mutex_unlock(&out->lock);
	return good;
}

bool lineout_has_reader(const struct lineout *out)
{
	struct pollfd p = { .fd = out->fd, .events = out->is_duplex ? POLLRDHUP : 0 };
	uint64_t since = out->stuck_since_ns;

	if (since && clock_now_ns() - since > STUCK_MS * 1000000ULL)
		return false;
	return poll(&p, 1, 0) <= 0 || !(p.revents & (POLLERR | POLLHUP | POLLRDHUP | POLLNVAL));
}
