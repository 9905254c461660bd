/* net/gateway/stream.c - see stream.h. */
#include "net/gateway/stream.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/gateway/tls.h"

void stream_open(struct stream *s, struct loop *l, int fd, loop_fd_fn fn, void *arg)
{
	*s = (struct stream){ .fd = fd, .loop = l, .fn = fn, .arg = arg };
}

void stream_event(struct stream *s, uint32_t events)
{
	s->is_readable |= (events & (LOOP_IN | LOOP_HUP | LOOP_ERR)) != 0;
	s->is_writable |= (events & (LOOP_OUT | LOOP_HUP | LOOP_ERR)) != 0;
}

void stream_start_tls(struct stream *s, struct tls *t)
{
	s->tls = t;
	tls_give(t, &s->in);
	s->is_readable = s->is_writable = true;
}

static ssize_t read_some(struct stream *s, char *to, size_t len)
{
	if (s->tls)
		return tls_read(s->tls, to, len);
	ssize_t n = recv(s->fd, to, len, 0);
	return n < 0 ? -errno : n;
}

/* Room for the next read: what is left at the end, or, if that is little, the whole buffer after
 * moving the contents. */
static char *make_room(struct fifo *q, size_t *ret_len)
{
	*ret_len = q->data ? FIFO_SIZE - q->start - q->len : FIFO_SIZE;
	if (*ret_len < FIFO_SIZE / 4)
		*ret_len = fifo_room(q);
	return fifo_tail(q, *ret_len);
}

static bool can_read(const struct stream *s)
{
	return s->fd >= 0 && !s->is_eof && !s->is_broken && s->is_readable && !s->is_bypassed &&
	       fifo_room(&s->in) > 0;
}

bool stream_fill(struct stream *s)
{
	size_t want;

	if (!can_read(s))
		return false;
	char *tail = make_room(&s->in, &want);
	ssize_t n = tail ? read_some(s, tail, want) : -ENOMEM;
	if (n > 0) {
		s->in.len += (size_t)n;
		s->bytes_in += (uint64_t)n;
		if (!s->tls && (size_t)n < want)
			s->is_readable = false; /* drained: the loop reports when there is more */
		return true;
	}
	if (s->in.len == 0)
		fifo_done(&s->in);
	if (n == -EAGAIN || n == -EINTR) {
		s->is_readable = n == -EINTR;
		return false;
	}
	if (n == 0)
		s->is_eof = true;
	else
		s->is_broken = true;
	return true;
}

static ssize_t write_some(struct stream *s, const char *from, size_t len)
{
	if (s->tls)
		return tls_write(s->tls, from, len);
	ssize_t n = send(s->fd, from, len, MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

static bool finish_writing(struct stream *s)
{
	if (!s->shut_wanted || s->is_shut || s->out.len > 0 || s->has_bulk)
		return false;
	s->is_shut = true;
	if (s->tls)
		tls_end(s->tls);
	(void)shutdown(s->fd, SHUT_WR);
	return true;
}

bool stream_flush(struct stream *s)
{
	bool progress = false;

	if (s->fd < 0 || s->is_broken)
		return false;
	/* The first write does not wait for the loop, because sockets are writable most of the
	 * time. */
	while (s->out.len > 0) {
		ssize_t n = write_some(s, fifo_bytes(&s->out), s->out.len);
		if (n == -EINTR)
			continue;
		if (n == -EAGAIN) {
			s->is_writable = false;
			return progress;
		}
		if (n < 0) {
			s->is_broken = true;
			return true;
		}
		s->bytes_out += (uint64_t)n;
		fifo_drop(&s->out, (size_t)n);
		progress = true;
	}
	return finish_writing(s) || progress;
}

void stream_shut(struct stream *s)
{
	s->shut_wanted = true;
}

static uint32_t wanted(const struct stream *s, bool want_read)
{
	uint32_t events = 0;

	if (want_read && !s->is_eof && !s->is_paused && fifo_room(&s->in) > 0)
		events |= LOOP_IN;
	if (!s->tls && (s->out.len > 0 || s->has_bulk))
		events |= LOOP_OUT;
	/* TLS may need to read before it can write. Waiting for the wrong event would busy-loop. */
	if (s->tls && tls_wants_write(s->tls))
		events |= LOOP_OUT;
	else if (s->tls && s->out.len > 0)
		events |= LOOP_IN;
	return events;
}

void stream_watch(struct stream *s, bool want_read)
{
	uint32_t events = 0;

	if (s->fd < 0)
		return;
	if (!s->is_broken)
		events = wanted(s, want_read);
	if (events == s->events && (s->source || events == 0))
		return;
	s->events = events;
	/* The loop always reports a hang-up, so a stream that waits for nothing must be
	 * unregistered. */
	if (events == 0)
		s->source = loop_source_remove(s->source);
	else if (s->source)
		(void)loop_change_fd(s->source, events);
	else if (loop_add_fd(s->loop, s->fd, events, s->fn, s->arg, &s->source, NULL) < 0)
		s->is_broken = true;
}

void stream_abort(struct stream *s)
{
	struct linger now = { .l_onoff = 1 };

	if (s->fd >= 0)
		(void)setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	stream_close(s);
}

void stream_close(struct stream *s)
{
	if (s->fd < 0)
		return;
	s->source = loop_source_remove(s->source);
	s->tls = tls_free(s->tls);
	fifo_done(&s->in);
	fifo_done(&s->out);
	(void)close(s->fd);
	s->fd = -1;
	s->events = 0;
}
