/* serve/http/tls_pump.c - see tls_pump.h. */
#include "serve/http/tls_pump.h"

#ifndef HAVE_GNUTLS

int tls_pump_new(struct tls_pump **ret, struct cordon_error **reterr)
{
	(void)ret;
	return err_set(reterr, CORDON_UNSUPPORTED, "this build has no GnuTLS");
}

struct tls_pump *tls_pump_free(struct tls_pump *p)
{
	(void)p;
	return NULL;
}

int tls_link_open(struct tls_pump *p, void *session, int fd, const char *head,
		  struct tls_link **ret, int *ret_fd, struct cordon_error **reterr)
{
	(void)p, (void)session, (void)fd, (void)head, (void)ret, (void)ret_fd;
	return err_set(reterr, CORDON_UNSUPPORTED, "this build has no GnuTLS");
}

void tls_link_close(struct tls_link *l)
{
	(void)l;
}

#else

#include <errno.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/condvar.h"
#include "base/loop.h"
#include "base/mem.h"

enum { CHUNK = 64 << 10, ROUNDS = 16, LAST_MS = 1000 };

struct tls_pump {
	struct loop *loop;
	pthread_t thread;
	char chunk[CHUNK];    /* what is moved; the thread's */
	pthread_mutex_t lock; /* guards is_done of the links */
	pthread_cond_t done;
};

/* Bytes that could not be moved on yet. While there are some, no more are read. */
struct rest {
	char *bytes;
	size_t at, len;
};

struct tls_link {
	struct tls_pump *pump;
	gnutls_session_t tls;
	int net, near, far; /* the connection; the pump's end of the plain text, and the owner's */
	struct loop_source *net_source, *near_source, *timer;
	struct rest in, out; /* to the owner, to the network */
	bool out_has_begun;  /* the library has taken a part of out and must be asked again */
	bool net_is_over, near_is_over, is_closing;
	bool is_done;
};

static void rest_done(struct rest *r)
{
	free(r->bytes);
	*r = (struct rest){ 0 };
}

/* False: no memory. */
static bool rest_keep(struct rest *r, const char *bytes, size_t len)
{
	r->bytes = mem_alloc(len);
	if (!r->bytes)
		return false;
	memcpy(r->bytes, bytes, len);
	r->at = 0;
	r->len = len;
	return true;
}

static void rest_drop(struct rest *r, size_t n)
{
	r->at += n;
	r->len -= n;
	if (r->len == 0)
		rest_done(r);
}

/* ---- to the owner */

/* Bytes written, 0: not now, -1: over. */
static ssize_t put_near(struct tls_link *l, const char *bytes, size_t len)
{
	ssize_t n = send(l->near, bytes, len, MSG_NOSIGNAL);

	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : n;
}

static bool move_in(struct tls_link *l)
{
	char *chunk = l->pump->chunk;

	if (l->in.len > 0) {
		ssize_t n = put_near(l, l->in.bytes + l->in.at, l->in.len);
		if (n < 0)
			l->near_is_over = true;
		if (n > 0)
			rest_drop(&l->in, (size_t)n);
		return n > 0;
	}
	ssize_t got = gnutls_record_recv(l->tls, chunk, CHUNK);
	if (got == GNUTLS_E_AGAIN || got == GNUTLS_E_INTERRUPTED)
		return false;
	if (got <= 0) {
		l->net_is_over = true;
		return false;
	}
	ssize_t n = put_near(l, chunk, (size_t)got);
	if (n < 0)
		l->near_is_over = true;
	else if (n < got && !rest_keep(&l->in, chunk + n, (size_t)(got - n)))
		l->net_is_over = true;
	return true;
}

/* ---- to the network */

/* As put_near. */
static ssize_t put_net(struct tls_link *l, const char *bytes, size_t len)
{
	ssize_t n = l->out_has_begun ? gnutls_record_send(l->tls, NULL, 0)
				     : gnutls_record_send(l->tls, bytes, len);

	l->out_has_begun = n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED;
	if (l->out_has_begun)
		return 0;
	return n < 0 ? -1 : n;
}

static bool move_out(struct tls_link *l)
{
	char *chunk = l->pump->chunk;

	if (l->out.len > 0) {
		ssize_t n = put_net(l, l->out.bytes + l->out.at, l->out.len);
		if (n < 0)
			l->net_is_over = true;
		if (n > 0)
			rest_drop(&l->out, (size_t)n);
		return n > 0;
	}
	if (l->near_is_over)
		return false;
	ssize_t got = recv(l->near, chunk, CHUNK, 0);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0) {
		l->near_is_over = true;
		return false;
	}
	size_t at = 0;
	ssize_t n = 1;
	while (at < (size_t)got && n > 0) { /* a record is at most 16 KiB */
		n = put_net(l, chunk + at, (size_t)got - at);
		at += n > 0 ? (size_t)n : 0;
	}
	if (n < 0 || (at < (size_t)got && !rest_keep(&l->out, chunk + at, (size_t)got - at)))
		l->net_is_over = true;
	return true;
}

/* ---- one connection, in the pump's thread */

static void forget_sources(struct tls_link *l)
{
	l->net_source = loop_source_remove(l->net_source);
	l->near_source = loop_source_remove(l->near_source);
}

static void finish(struct tls_link *l)
{
	forget_sources(l);
	l->timer = loop_source_remove(l->timer);
	if (!l->net_is_over && !l->out_has_begun)
		(void)gnutls_bye(l->tls, GNUTLS_SHUT_WR);
	(void)shutdown(l->net, SHUT_RDWR);
	pthread_mutex_lock(&l->pump->lock);
	l->is_done = true;
	pthread_cond_broadcast(&l->pump->done);
	pthread_mutex_unlock(&l->pump->lock);
}

static void watch_for(struct tls_link *l)
{
	uint32_t net = (l->in.len ? 0 : LOOP_IN) | (l->out.len ? LOOP_OUT : 0);
	uint32_t near = (l->out.len ? 0 : LOOP_IN) | (l->in.len ? LOOP_OUT : 0);

	if (l->near_is_over) /* what it wrote before still goes out */
		l->near_source = loop_source_remove(l->near_source);
	if (l->net_source && loop_change_fd(l->net_source, net) < 0)
		l->net_is_over = true;
	if (l->near_source && loop_change_fd(l->near_source, near) < 0)
		l->net_is_over = true;
}

static void move(struct tls_link *l)
{
	bool moved = true;

	for (int i = 0; i < ROUNDS && moved && !l->net_is_over; i++) {
		moved = !l->near_is_over && move_in(l);
		if (!l->net_is_over)
			moved |= move_out(l);
	}
	watch_for(l);
	bool is_over = l->net_is_over || (l->near_is_over && l->out.len == 0);
	if (!is_over)
		return;
	forget_sources(l);
	(void)shutdown(l->near, SHUT_RDWR); /* the owner sees the end */
	if (l->is_closing)
		finish(l);
}

static void on_event(struct loop *loop, int fd, uint32_t events, void *arg)
{
	struct tls_link *l = arg;

	(void)loop;
	if (fd == l->net && (events & LOOP_ERR))
		l->net_is_over = true;
	move(l);
}

static void on_time(struct loop *loop, void *arg)
{
	struct tls_link *l = arg;

	(void)loop;
	l->timer = NULL;
	l->net_is_over = true;
	finish(l);
}

static void begin(struct loop *loop, void *arg)
{
	struct tls_link *l = arg;

	if (loop_add_fd(loop, l->net, LOOP_IN, on_event, l, &l->net_source, NULL) < 0 ||
	    loop_add_fd(loop, l->near, LOOP_IN, on_event, l, &l->near_source, NULL) < 0)
		l->net_is_over = true;
	move(l);
}

static void begin_close(struct loop *loop, void *arg)
{
	struct tls_link *l = arg;

	l->is_closing = true;
	if (!l->net_source) { /* over already */
		finish(l);
		return;
	}
	if (loop_add_timer(loop, deadline_after_ms(LAST_MS), on_time, l, &l->timer, NULL) < 0)
		l->net_is_over = true;
	move(l);
}

/* ---- for others */

int tls_link_open(struct tls_pump *p, void *session, int fd, const char *head,
		  struct tls_link **ret, int *ret_fd, struct cordon_error **reterr)
{
	int ends[2];
	struct tls_link *l = mem_alloc(sizeof(*l));

	if (!l || !rest_keep(&l->out, head, strlen(head))) {
		free(l);
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
		rest_done(&l->out);
		free(l);
		return err_errno(reterr, errno, "make a pair of sockets");
	}
	l->pump = p;
	l->tls = session;
	l->net = fd;
	l->near = ends[0];
	*ret_fd = l->far = ends[1];
	*ret = l;
	if (loop_wake(p->loop, begin, l) == 0)
		return 0;
	close(l->near);
	close(l->far);
	rest_done(&l->out);
	free(l);
	return err_set(reterr, CORDON_NOMEM, "out of memory");
}

void tls_link_close(struct tls_link *l)
{
	struct tls_pump *p = l->pump;

	(void)shutdown(l->far, SHUT_RDWR);
	while (loop_wake(p->loop, begin_close, l) < 0)
		(void)usleep(1000); /* no memory at present */
	pthread_mutex_lock(&p->lock);
	while (!l->is_done)
		pthread_cond_wait(&p->done, &p->lock);
	pthread_mutex_unlock(&p->lock);
	close(l->near);
	close(l->far);
	rest_done(&l->in);
	rest_done(&l->out);
	free(l);
}

static void *pump(void *arg)
{
	struct tls_pump *p = arg;

	(void)loop_run(p->loop, NULL);
	return NULL;
}

int tls_pump_new(struct tls_pump **ret, struct cordon_error **reterr)
{
	struct tls_pump *p = mem_alloc(sizeof(*p));
	int r = p ? loop_new(&p->loop, reterr) : err_set(reterr, CORDON_NOMEM, "out of memory");

	if (r == 0) {
		pthread_mutex_init(&p->lock, NULL);
		condvar_init(&p->done);
		int problem = pthread_create(&p->thread, NULL, pump, p);
		r = problem ? err_errno(reterr, problem, "start a thread") : 0;
	}
	if (r < 0) {
		if (p)
			(void)loop_free(p->loop);
		free(p);
		return r;
	}
	*ret = p;
	return 0;
}

static void stop(struct loop *loop, void *arg)
{
	(void)arg;
	loop_stop(loop);
}

struct tls_pump *tls_pump_free(struct tls_pump *p)
{
	if (!p)
		return NULL;
	while (loop_wake(p->loop, stop, NULL) < 0)
		(void)usleep(1000);
	(void)pthread_join(p->thread, NULL);
	(void)loop_free(p->loop);
	pthread_cond_destroy(&p->done);
	pthread_mutex_destroy(&p->lock);
	free(p);
	return NULL;
}

#endif
