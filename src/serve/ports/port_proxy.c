/* serve/ports/port_proxy.c - see port_proxy.h. */
#include "serve/ports/port_proxy.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "net/gateway/body.h"
#include "serve/http/problem.h"
#include "serve/ports/port_head.h"

enum {
	PIECE = 64 << 10,
	AHEAD = 256 << 10, /* of an answer that comes before the request was sent */
	INTERIM_MAX = 16,
	SILENCE_MS = 600000, /* in the middle of an answer */
};

/* How one request went on. */
enum outcome {
	GOOD,
	GONE,    /* the client */
	CLOSED,  /* by the server, or by the session */
	SILENT,  /* the server has not answered, or not read, in time */
	BROKEN,  /* it has sent what is not HTTP */
	TOO_LONG /* the client's body */
};

/* One request on its way. */
struct pass {
	struct httpd_exchange *x;
	const struct port_proxy *proxy;
	const struct port_proxy_target *to;
	int fd;                /* to the server */
	struct buf in;         /* what it has sent and was not used yet */
	bool is_eof, is_reset; /* it sends nothing more; because the connection broke */
	bool is_early;         /* it answers before it has read everything: the rest is not sent */
	uint64_t wait_ms;
	deadline_ns deadline;
	struct cordon_error *error; /* of BROKEN; NULL: none */
};

/* ---- the connection */

static bool dial(const char *address, int *ret)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || !str_copy(sa.sun_path, sizeof(sa.sun_path), address) ||
	    connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0)
		return false;
	*ret = TAKE_FD(fd);
	return true;
}

/* Runs in another thread: whoever waits for the server goes on, and sees its end. */
static void on_left(void *arg)
{
	struct pass *p = arg;

	(void)shutdown(p->fd, SHUT_RDWR);
}

static enum outcome fail(const struct pass *p, enum outcome otherwise)
{
	return httpd_is_gone(p->x) ? GONE : otherwise;
}

/* Waits until the server can be written to or read from; *ret: which. */
static enum outcome await(struct pass *p, short events, short *ret)
{
	struct pollfd f = { .fd = p->fd, .events = events };

	for (;;) {
		int n = poll(&f, 1, deadline_poll_ms(p->deadline));
		if (n > 0) {
			*ret = f.revents;
			return GOOD;
		}
		if (n == 0)
			return fail(p, SILENT);
		if (errno != EINTR)
			return fail(p, CLOSED);
	}
}

/* Reads what is there, up to max in all. What came before a reset still counts. */
static enum outcome take(struct pass *p, size_t max)
{
	size_t want = p->in.len < max ? max - p->in.len : 0;
	char *room = buf_reserve(&p->in, want < PIECE ? want : PIECE);

	if (!room || want == 0)
		return BROKEN;
	ssize_t n = recv(p->fd, room, want < PIECE ? want : PIECE, MSG_DONTWAIT);
	if (n > 0)
		buf_commit(&p->in, (size_t)n);
	else if (n == 0)
		p->is_eof = true;
	else if (errno != EAGAIN && errno != EINTR)
		p->is_eof = p->is_reset = true;
	return GOOD;
}

static enum outcome take_more(struct pass *p, size_t max)
{
	short ready = 0;
	enum outcome o = p->is_eof ? fail(p, CLOSED) : await(p, POLLIN, &ready);

	return o == GOOD ? take(p, max) : o;
}

/* The server does not read at present. What it says meanwhile is kept, up to a limit: it may wait
 * for its own answer to be taken. Beyond the limit, or at its end, nothing more is sent to it. */
static enum outcome make_room(struct pass *p)
{
	short ready = 0;
	enum outcome o = await(p, POLLIN | POLLOUT, &ready);

	if (o == GOOD && (ready & POLLIN))
		o = take(p, AHEAD);
	p->is_early = o == BROKEN || p->is_eof;
	return o == BROKEN ? GOOD : o;
}

/* The time begins again whenever the server reads something. A server that closes its side may have
 * answered before, so that is not yet a failure. */
static enum outcome send_all(struct pass *p, const char *bytes, size_t len)
{
	enum outcome o = GOOD;

	while (len > 0 && o == GOOD && !p->is_early) {
		ssize_t n = send(p->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
			p->deadline = deadline_after_ms(p->wait_ms);
		} else if (errno == EAGAIN) {
			o = make_room(p);
		} else if (errno != EINTR) {
			p->is_early = true;
		}
	}
	return o;
}

/* ---- the request */

static enum outcome send_piece(struct pass *p, const char *bytes, size_t len, bool is_chunked)
{
	char size[24];
	int n = snprintf(size, sizeof(size), "%zx\r\n", len);
	enum outcome o = is_chunked ? send_all(p, size, (size_t)n) : GOOD;

	if (o == GOOD)
		o = send_all(p, bytes, len);
	return o == GOOD && is_chunked ? send_all(p, "\r\n", 2) : o;
}

static enum outcome send_body(struct pass *p)
{
	bool is_chunked = httpd_header(p->x, "Transfer-Encoding") != NULL;
	enum outcome o = GOOD;
	char piece[16 << 10];
	ssize_t n;

	while (o == GOOD && (n = httpd_body_read(p->x, piece, sizeof(piece))) != 0) {
		if (n < 0)
			return httpd_body_is_too_long(p->x) ? TOO_LONG : GONE;
		p->deadline = deadline_after_ms(p->wait_ms);
		o = send_piece(p, piece, (size_t)n, is_chunked);
	}
	return o == GOOD && is_chunked ? send_all(p, "0\r\n\r\n", 5) : o;
}

/* ---- the answer */

/* The first head that is final. */
static enum outcome read_head(struct pass *p, struct http_head *ret)
{
	for (int interim = 0; interim < INTERIM_MAX;) {
		ptrdiff_t len = http_head_length(buf_text(&p->in), p->in.len);
		if (len < 0) {
			(void)err_set(&p->error, CORDON_LIMIT, "its head is too long");
			return BROKEN;
		}
		if (len == 0) {
			enum outcome o = take_more(p, HTTP_HEAD_MAX);
			if (o != GOOD)
				return o;
			continue;
		}
		if (http_parse_response(p->in.data, (size_t)len, httpd_method(p->x), ret,
					&p->error) < 0)
			return BROKEN;
		if (ret->status >= 200 || ret->status == 101)
			return GOOD;
		buf_consume(&p->in, (size_t)len);
		interim++;
	}
	(void)err_set(&p->error, CORDON_PROTOCOL, "it has too many interim heads");
	return BROKEN;
}

/* Everything that is in the buffer. False: no more is passed on. */
static bool pass_buffer(struct pass *p, struct body *b, enum outcome *ret)
{
	size_t used = 1, len;
	const char *payload;

	while (!b->is_done && p->in.len > 0 && used > 0) {
		if (body_take(b, p->in.data, p->in.len, &used, &payload, &len) < 0)
			*ret = BROKEN;
		else if (len > 0 && !httpd_stream_write(p->x, payload, len))
			*ret = GONE;
		if (*ret != GOOD)
			return false;
		buf_consume(&p->in, used);
	}
	return !b->is_done;
}

static enum outcome pass_body(struct pass *p, struct body *b)
{
	enum outcome o = GOOD;

	while (pass_buffer(p, b, &o)) {
		if (p->is_eof)
			return fail(p, b->framing == HTTP_TO_CLOSE && !p->is_reset ? GOOD : CLOSED);
		p->deadline = deadline_after_ms(SILENCE_MS);
		o = take_more(p, PIECE);
		if (o != GOOD)
			return o;
	}
	return o;
}

static bool is_silent_status(const struct pass *p, const struct http_head *h)
{
	return h->framing == HTTP_NO_BODY && !str_eq(httpd_method(p->x), "HEAD");
}

static void answer(struct pass *p, const struct http_head *h)
{
	const struct http_field *f = http_field_find(h, "Content-Type");
	cleanup_free char *type = f ? str_ndup(f->value.data, f->value.len) : NULL;
	bool is_sized = http_field_find(h, "Content-Length") != NULL;
	struct body b;

	body_init(&b, h);
	port_head_answer(p->x, p->to, h);
	if (is_silent_status(p, h)) {
		httpd_answer(p->x, h->status, type, NULL, 0);
		return;
	}
	size_t size = h->size; /* h points into the buffer */
	httpd_stream_begin_sized(p->x, h->status, type, is_sized ? h->length : HTTPD_UNKNOWN_BYTES);
	buf_consume(&p->in, size);
	httpd_stream_end(p->x, pass_body(p, &b) == GOOD);
}

static void refuse_tunnel(struct pass *p)
{
	problem_answer_as(p->x, 429, "limit", "too many connections to ports of sandboxes",
			  "close some of them");
}

/* The server agrees: from here on both send what they like. */
static void begin_tunnel(struct pass *p, const struct http_head *h)
{
	port_head_answer(p->x, p->to, h);
	const struct port_tunnel_options o = { .owner = p->to->owner,
					       .guest_fd = p->fd,
					       .early = p->in.data + h->size,
					       .len = p->in.len - h->size };
	httpd_unwatch(p->x);
	p->fd = -1;
	if (!port_tunnels_begin(p->proxy->tunnels, p->x, &o))
		refuse_tunnel(p);
}

static void explain(struct pass *p, enum outcome o)
{
	char text[200];
	unsigned port = p->to->port;

	switch (o) {
	case SILENT:
		snprintf(text, sizeof(text), "the server on port %u has not answered in time",
			 port);
		problem_answer_as(p->x, 504, "timeout", text,
				  "see whether it is busy, or send Cordon-Timeout: SECONDS");
		return;
	case BROKEN:
		snprintf(text, sizeof(text), "the answer of the server on port %u is not HTTP: %s",
			 port, p->error ? cordon_error_message(p->error) : "it is broken");
		problem_answer_as(p->x, 502, "protocol", text, "see what listens on this port");
		return;
	case TOO_LONG:
		problem_answer_as(p->x, 413, "limit", "the request is too large",
				  "send it in pieces");
		return;
	default:
		snprintf(text, sizeof(text),
			 "nothing listens on port %u of the sandbox, or it closed the connection "
			 "without an answer",
			 port);
		problem_answer_as(p->x, 502, "protocol", text,
				  "start the server first, at 127.0.0.1 or 0.0.0.0");
	}
}

/* Answers with what the server has said, unless that is no answer to this request. */
static enum outcome use_head(struct pass *p, const struct http_head *h)
{
	bool is_upgrade = h->status == 101;

	if (h->status >= 600 ||
	    (is_upgrade && (!port_head_is_websocket(p->x) || !http_field_find(h, "Upgrade"))))
		return BROKEN;
	if (is_upgrade)
		begin_tunnel(p, h);
	else
		answer(p, h);
	return GOOD;
}

static void run(struct pass *p, const struct buf *head)
{
	struct http_head h = { 0 };
	enum outcome o = send_all(p, head->data, head->len);

	if (o == GOOD)
		o = send_body(p);
	p->deadline = deadline_after_ms(p->wait_ms);
	if (o == GOOD)
		o = read_head(p, &h);
	if (o == GOOD)
		o = use_head(p, &h);
	if (o != GOOD)
		explain(p, o);
}

/* ---- before a sandbox is looked for */

static bool is_clean(const char *target)
{
	for (; *target; target++)
		if (*target <= 0x20 || *target == 0x7f)
			return false;
	return true;
}

/* Whether a browser would make a page, a script or a worker of the answer, with the rights of this
 * server's own pages. */
static bool is_page_load(struct httpd_exchange *x)
{
	const char *use = httpd_header(x, "Sec-Fetch-Dest");

	return (use && !str_eq(use, "empty") && !str_eq(use, "websocket")) ||
	       httpd_header(x, "Service-Worker");
}

bool port_proxy_check(struct httpd_exchange *x, bool has_own_name)
{
	const char *method = httpd_method(x);
	bool is_name = strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_") == strlen(method);

	if (!is_name || !is_clean(httpd_target(x)))
		problem_answer_as(x, 400, "invalid", "the request is not well-formed", NULL);
	else if (str_eq(method, "CONNECT") || str_eq(method, "TRACE"))
		problem_answer_as(x, 501, "unsupported", "this method is not passed on", NULL);
	else if (!has_own_name && is_page_load(x))
		problem_answer_as(x, 403, "denied",
				  "pages of a sandbox are not shown under the server's own name",
				  "fetch it, or use a name of the port's own (docs/serve.md)");
	else
		return true;
	return false;
}

void port_proxy_serve(struct httpd_exchange *x, const struct port_proxy *proxy,
		      const struct port_proxy_target *to)
{
	struct pass p = {
		.x = x, .proxy = proxy, .to = to, .fd = -1, .wait_ms = port_head_wait_ms(x)
	};
	cleanup_buf struct buf head = { 0 };

	buf_init(&p.in, (size_t)2 * AHEAD);
	p.deadline = deadline_after_ms(p.wait_ms);
	if (port_head_request(x, proxy, to, &head, &p.error) < 0) {
		problem_answer(x, p.error);
	} else if (!dial(to->address, &p.fd)) {
		problem_answer_as(x, 503, "limit", "too many connections to this port",
				  "try again later");
	} else {
		httpd_watch(x, on_left, &p);
		run(&p, &head);
		if (p.fd >= 0)
			httpd_unwatch(x);
	}
	close_fdp(&p.fd);
	buf_done(&p.in);
	p.error = cordon_error_free(p.error);
}
