/* net/host/port_link.c - see port_link.h. */
#include "net/host/port_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "wall/wall.h"

/* So often is one direction served before others get their turn. */
enum { TURNS = 4 };

/* The other end learns of a reset by a reset. Does nothing to Unix sockets. */
static void reset(int fd)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

struct port_link *port_link_new(unsigned port, int host_fd, int reply_fd)
{
	struct port_link *l = mem_alloc(sizeof(*l));
	int one = 1;

	if (!l) {
		close(host_fd);
		close(reply_fd);
		return NULL;
	}
	(void)setsockopt(host_fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	*l = (struct port_link){ .port = port,
				 .host_fd = host_fd,
				 .guest_fd = reply_fd,
				 .deadline = deadline_after_ms(LINK_CONNECT_MS) };
	return l;
}

struct port_link *port_link_free(struct port_link *l)
{
	if (!l)
		return NULL;
	close_fdp(&l->host_fd);
	close_fdp(&l->guest_fd);
	free(l->up.bytes);
	free(l->down.bytes);
	free(l);
	return NULL;
}

static bool is_empty(const struct link_flow *f)
{
	return f->from == f->to;
}

static short events(const struct link_flow *in, const struct link_flow *out, bool is_hung)
{
	short want = is_hung ? 0 : POLLRDHUP;

	if (is_empty(in) && !in->is_eof)
		want |= POLLIN;
	if (!is_empty(out))
		want |= POLLOUT;
	return want;
}

short port_link_host_events(const struct port_link *l)
{
	return l->state == LINK_OPEN ? events(&l->up, &l->down, l->is_host_hung) : 0;
}

short port_link_guest_events(const struct port_link *l)
{
	if (l->state == LINK_OPEN)
		return events(&l->down, &l->up, l->is_guest_hung);
	return l->state == LINK_ASKING ? POLLIN : POLLOUT;
}

static void fail(struct port_link *l)
{
	reset(l->host_fd);
	if (l->state != LINK_ASKING)
		reset(l->guest_fd);
	l->state = LINK_OVER;
}

static void begin(struct port_link *l)
{
	l->up.bytes = mem_alloc(LINK_BUFFER);
	l->down.bytes = mem_alloc(LINK_BUFFER);
	if (!l->up.bytes || !l->down.bytes) {
		fail(l);
		return;
	}
	l->state = LINK_OPEN;
	l->deadline = 0;
}

struct port_link *port_link_join(int host_fd, int guest_fd, const struct port_link_early *early)
{
	struct port_link *l = port_link_new(0, host_fd, guest_fd);

	if (!l)
		return NULL;
	l->state = LINK_CONNECTING;
	begin(l);
	if (l->state != LINK_OPEN || early->up_len > LINK_BUFFER || early->down_len > LINK_BUFFER)
		return port_link_free(l);
	l->up.to = early->up_len;
	l->down.to = early->down_len;
	if (early->up_len > 0)
		memcpy(l->up.bytes, early->up, early->up_len);
	if (early->down_len > 0)
		memcpy(l->down.bytes, early->down, early->down_len);
	return l;
}

static void dial(struct port_link *l)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)l->port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = wall_take_socket(l->guest_fd), one = 1;

	if (fd == -EAGAIN)
		return;
	if (fd < 0) {
		fail(l);
		return;
	}
	close(l->guest_fd);
	l->guest_fd = fd;
	l->state = LINK_CONNECTING;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		begin(l);
	else if (errno != EINPROGRESS)
		fail(l);
}

static void finish_dial(struct port_link *l)
{
	int e = 0;
	socklen_t len = sizeof(e);

	if (getsockopt(l->guest_fd, SOL_SOCKET, SO_ERROR, &e, &len) != 0 || e != 0)
		fail(l);
	else
		begin(l);
}

static bool is_later(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* Reads into the empty buffer. 1: something came, or the end; 0: nothing now; -1: a reset. */
static int take(struct link_flow *f, int fd)
{
	ssize_t n = recv(fd, f->bytes, LINK_BUFFER, MSG_DONTWAIT);

	if (n < 0)
		return is_later() ? 0 : -1;
	f->from = 0;
	f->to = (size_t)n;
	f->is_eof = n == 0;
	return 1;
}

/* 1: something went out; 0: nothing now. If the other end takes nothing more, the rest of this
 * direction is dropped; the other direction goes on. */
static int give(struct link_flow *f, int fd)
{
	ssize_t n = send(fd, f->bytes + f->from, f->to - f->from, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && is_later())
		return 0;
	if (n < 0) {
		f->from = f->to = 0;
		f->is_eof = true;
		return 1;
	}
	f->from += (size_t)n;
	return 1;
}

/* Moves what can be moved now. 1: something moved; 0: nothing; -1: a reset. */
static int flow(struct link_flow *f, int in, int out)
{
	int moved = 0, r = 1;

	for (int i = 0; i < TURNS && r > 0 && !f->is_shut; i++) {
		r = is_empty(f) && !f->is_eof ? take(f, in) : 1;
		if (r > 0 && !is_empty(f))
			r = give(f, out);
		if (r > 0 && is_empty(f) && f->is_eof) {
			(void)shutdown(out, SHUT_WR);
			f->is_shut = true;
		}
		moved |= r > 0;
	}
	return r < 0 ? r : moved;
}

static bool is_end(short revents)
{
	return revents & (POLLRDHUP | POLLHUP | POLLERR);
}

static void move(struct port_link *l, short host, short guest)
{
	int up = flow(&l->up, l->host_fd, l->guest_fd);
	int down = flow(&l->down, l->guest_fd, l->host_fd);

	l->is_host_hung = l->is_host_hung || is_end(host);
	l->is_guest_hung = l->is_guest_hung || is_end(guest);
	if (up < 0 || down < 0) {
		fail(l);
	} else if (l->up.is_shut && l->down.is_shut) {
		l->state = LINK_OVER;
	} else if ((l->is_host_hung || l->is_guest_hung) && (!l->deadline || up > 0 || down > 0)) {
		/* A client that is gone must not keep a place for ever. */
		l->deadline = deadline_after_ms(LINK_HALF_MS);
	}
}

void port_link_step(struct port_link *l, short host, short guest)
{
	if (l->state == LINK_ASKING && guest)
		dial(l);
	else if (l->state == LINK_CONNECTING && guest)
		finish_dial(l);
	else if (l->state == LINK_OPEN && (host || guest))
		move(l, host, guest);
	if (l->state != LINK_OVER && l->deadline && deadline_is_over(l->deadline))
		fail(l);
}
