/* net/gateway/control.c - see control.h. */
#include "net/gateway/control.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file.h"

static void flush(struct control *c)
{
	while (c->out.len > 0 && !c->is_gone) {
		ssize_t n = send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			c->is_gone = errno != EAGAIN;
			break;
		}
		buf_consume(&c->out, (size_t)n);
	}
	if (c->source)
		(void)loop_change_fd(c->source, LOOP_IN | (c->out.len > 0 ? LOOP_OUT : 0u));
}

static void take_lines(struct control *c)
{
	char *end;

	while (c->in.len > 0 && (end = memchr(c->in.data, '\n', c->in.len))) {
		size_t len = (size_t)(end - c->in.data);
		cleanup_json json_t *message = NULL;
		if (json_parse(c->in.data, len, CONTROL_LINE_MAX, &message, NULL) < 0 ||
		    !json_is_object(message)) {
			c->is_gone = true; /* the peer is not the host program */
			return;
		}
		buf_consume(&c->in, len + 1);
		c->fn(message, c->arg);
	}
	if (c->in.len >= CONTROL_LINE_MAX)
		c->is_gone = true;
}

static void on_event(struct loop *l, int fd, uint32_t events, void *arg)
{
	struct control *c = arg;

	if (events & LOOP_OUT)
		flush(c);
	if (events & (LOOP_IN | LOOP_HUP | LOOP_ERR)) {
		char *room = buf_reserve(&c->in, 4096);
		ssize_t n = room ? recv(fd, room, 4096, MSG_DONTWAIT) : -1;
		if (n > 0) {
			buf_commit(&c->in, (size_t)n);
			take_lines(c);
		} else if (n == 0 || !room || (errno != EAGAIN && errno != EINTR)) {
			c->is_gone = true;
		}
	}
	if (c->is_gone)
		loop_stop(l);
}

int control_open(struct control *c, struct loop *l, int fd, control_fn fn, void *arg,
		 struct cordon_error **reterr)
{
	*c = (struct control){ .fd = fd, .loop = l, .fn = fn, .arg = arg };
	buf_init(&c->in, CONTROL_LINE_MAX + 4096);
	buf_init(&c->out, CONTROL_QUEUE_MAX);
	return loop_add_fd(l, fd, LOOP_IN, on_event, c, &c->source, reterr);
}

void control_close(struct control *c)
{
	c->source = loop_source_remove(c->source);
	buf_done(&c->in);
	buf_done(&c->out);
	if (c->fd >= 0)
		(void)close(c->fd);
	c->fd = -1;
}

void control_send(struct control *c, json_t *message)
{
	size_t len;
	cleanup_free char *text = message ? json_text(message, &len) : NULL;

	json_decref(message);
	/* An event that cannot be reported must not happen unseen: the gateway stops. */
	if (!text || buf_add(&c->out, text, len) < 0 || buf_add_char(&c->out, '\n') < 0) {
		c->is_gone = true;
		loop_stop(c->loop);
		return;
	}
	flush(c);
}

bool control_is_busy(const struct control *c)
{
	return c->out.len > CONTROL_QUEUE_BUSY;
}
