/* net/gateway/exchange.c - HTTP requests: parses each one, decides, and writes it anew for the
 * server. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "net/gateway/conn.h"
#include "net/gateway/url.h"

enum { PIECE_SPARE = 64 }; /* room for a chunk's size line and line ends */

void exchange_start(struct conn *c)
{
	c->state = CONN_EXCHANGE;
	c->speaks_http = true;
	c->audit.is_open = false; /* each request is an event of its own */
	exchange_done(c);
}

void exchange_done(struct conn *c)
{
	(void)secret_filter_free(c->exchange.filter);
	c->exchange = (struct exchange){ 0 };
}

static uint16_t default_port(const struct conn *c)
{
	return c->is_opened ? 443 : 80;
}

/* The Host header must name the target. Otherwise a server that serves several sites would answer
 * for another one. */
static bool check_host(struct conn *c, const struct http_head *h)
{
	struct host named;
	uint16_t port = default_port(c);
	char other[HOST_TEXT_SIZE];

	if (!h->host.data)
		return true; /* HTTP/1.0; we send our own Host to the server */
	if (host_parse_authority(h->host.data, h->host.len, &named, &port, NULL) == 0 &&
	    host_agrees(&named, &c->target) && port == c->port)
		return true;
	(void)snprintf(other, sizeof(other), "%.*s", h->host.len < 200 ? (int)h->host.len : 200,
		       h->host.data);
	refuse_mismatch(c, "the Host field", other);
	return false;
}

static bool read_absolute(struct conn *c, const struct http_head *h, char **ret_path)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_url struct url u = { 0 };

	if (url_parse(h->target.data, h->target.len, &u, &e) < 0) {
		refuse_for(c, 400, "protocol", "the target is not a URL: %s",
			   cordon_error_message(e));
		return false;
	}
	if (u.has_userinfo) {
		refuse_for(c, 400, "protocol", "user names in a URL are refused");
		return false;
	}
	/* A client without TLS (the host program, a pod) sends https:// URLs, and the gateway adds
	 * TLS. In a tunnel, the client has TLS itself, or we already terminated it. */
	if (!c->is_fixed)
		c->is_opened = u.is_tls;
	if (u.is_tls != c->is_opened) {
		refuse_for(c, 400, "protocol", "another scheme than the tunnel's");
		return false;
	}
	if (c->is_fixed && (!host_agrees(&u.host, &c->target) || u.port != c->port)) {
		refuse_mismatch(c, "the request", u.host.name);
		return false;
	}
	c->target = u.host;
	c->port = u.port;
	*ret_path = TAKE_PTR(u.path);
	return true;
}

/* Finds the target, and the path as the server will see it. */
static bool read_target(struct conn *c, const struct http_head *h, char **ret_path)
{
	cleanup_error struct cordon_error *e = NULL;

	if (strcmp(h->method, "CONNECT") == 0) {
		refuse_for(c, 400, "protocol", "CONNECT within a connection");
		return false;
	}
	if (h->target.data[0] != '/' && !http_slice_is(h->target, "*"))
		return read_absolute(c, h, ret_path) && check_host(c, h);
	if (!c->is_fixed) {
		refuse_for(c, 400, "protocol",
			   "this is a proxy: the target must be a whole http:// or https:// URL");
		return false;
	}
	if (h->target.data[0] == '*') {
		if (strcmp(h->method, "OPTIONS") != 0) {
			refuse_for(c, 400, "protocol", "the target is not a path");
			return false;
		}
		*ret_path = str_dup("*");
	} else if (url_normalise_path(h->target.data, h->target.len, ret_path, &e) < 0) {
		refuse_for(c, 414, "limit", "%s", cordon_error_message(e));
		return false;
	}
	if (!*ret_path) {
		refuse_for(c, 503, "failed", "out of memory");
		return false;
	}
	return check_host(c, h);
}

/* Headers that the host program may use for its decision. */
static void show_headers(struct conn *c, const struct http_head *h)
{
	cleanup_json json_t *obj = json_object();

	for (size_t i = 0; obj && i < h->field_count; i++) {
		char name[128];
		(void)snprintf(name, sizeof(name), "%.*s",
			       h->fields[i].name.len < 127 ? (int)h->fields[i].name.len : 127,
			       h->fields[i].name.data);
		(void)json_object_set_new(
			obj, name,
			json_string_lossy(h->fields[i].value.data, h->fields[i].value.len));
	}
	free(c->dial_headers);
	c->dial_headers = json_text(obj, NULL);
}

static void decide(struct conn *c, const struct http_head *h)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_free char *path = NULL;

	request_audit_start(c, h->method, NULL);
	if (!read_target(c, h, &path))
		return;
	c->audit.path = TAKE_PTR(path);
	struct rule_query q = {
		.host = &c->target, .port = c->port, .method = h->method, .path = c->audit.path
	};
	ruleset_decide(c->hub->config.rules, &q, &c->verdict);
	if (!c->verdict.allowed) {
		refuse_by_rule(c, &c->verdict);
		return;
	}
	if (h->framing == HTTP_LENGTH && h->length > c->hub->config.request_bytes) {
		refuse_for(c, 413, "limit", "the request has %llu bytes, %llu are allowed",
			   (unsigned long long)h->length,
			   (unsigned long long)c->hub->config.request_bytes);
		return;
	}
	if (c->is_opened && hub_open_tls(c->hub, &e) < 0) {
		refuse_for(c, 503, "failed", "%s", cordon_error_message(e));
		return;
	}
	if (c->verdict.ask || c->hub->config.callback)
		show_headers(c, h);
	c->exchange.phase = EXCHANGE_DIAL;
	dial_start(c, PURPOSE_REQUEST);
}

static bool step_head(struct conn *c)
{
	cleanup_error struct cordon_error *e = NULL;
	struct http_head h;
	ptrdiff_t len = http_head_length(fifo_bytes(&c->client.in), c->client.in.len);

	if (len == 0) {
		if (c->server.fd >= 0 && (c->server.is_eof || c->server.is_broken))
			stream_close(&c->server); /* the kept connection is of no use */
		if (c->client.is_eof)
			conn_leave(c);
		return c->client.is_eof;
	}
	if (len < 0)
		refuse_for(c, 431, "limit", "the request's head is longer than %d bytes",
			   HTTP_HEAD_MAX);
	else if (http_parse_request(fifo_bytes(&c->client.in), (size_t)len, &h, &e) < 0)
		refuse_for(c, 400, "protocol", "bad request: %s", cordon_error_message(e));
	else
		decide(c, &h);
	return true;
}

/* Fields that the gateway sends itself, so the guest's are dropped. */
static bool is_ours(const struct conn *c, const struct http_head *h, const struct http_field *f)
{
	if (http_field_is_hop(h, f) || http_slice_is(f->name, "Host") ||
	    http_slice_is(f->name, "Content-Length") || http_slice_is(f->name, "Expect"))
		return true;
	/* An answer that may contain a secret must arrive uncompressed and complete. */
	return c->exchange.is_guarded &&
	       (http_slice_is(f->name, "Accept-Encoding") || http_slice_is(f->name, "Range") ||
		http_slice_is(f->name, "If-Range"));
}

static int add_fields(struct conn *c, const struct http_head *h, struct buf *out)
{
	static const struct secret_list none;
	const struct secret_list *secrets = c->is_opened ? &c->hub->config.secrets : &none;
	int r = 0;

	for (size_t i = 0; i < h->field_count && r == 0; i++) {
		const struct http_field *f = &h->fields[i];
		if (is_ours(c, h, f))
			continue;
		r = buf_add(out, f->name.data, f->name.len);
		if (r == 0)
			r = buf_add_str(out, ": ");
		if (r == 0)
			r = secret_fill(secrets, &c->target, f, out, &c->exchange.used_secret);
		if (r == 0)
			r = buf_add_str(out, "\r\n");
	}
	return r;
}

static int add_request(struct conn *c, const struct http_head *h, struct buf *out)
{
	char port[8] = "";

	if (c->port != default_port(c))
		(void)snprintf(port, sizeof(port), ":%u", c->port);
	int r = buf_printf(out, "%s %s HTTP/1.1\r\nHost: %s%s\r\n", h->method, c->audit.path,
			   c->target.name, port);
	if (r == 0)
		r = add_fields(c, h, out);
	if (r == 0 && c->exchange.is_guarded)
		r = buf_add_str(out, "Accept-Encoding: identity\r\n");
	if (r == 0 && h->framing == HTTP_CHUNKED)
		r = buf_add_str(out, "Transfer-Encoding: chunked\r\n");
	else if (r == 0 && http_field_find(h, "Content-Length"))
		r = buf_printf(out, "Content-Length: %llu\r\n", (unsigned long long)h->length);
	return r < 0 ? r : buf_add_str(out, "\r\n");
}

static bool start_server_tls(struct conn *c)
{
	struct tls *t = NULL;

	if (!c->is_opened || c->server.tls)
		return true;
	if (tls_connect(c->hub->tls, &c->target, c->server.fd, &t, NULL) < 0)
		return false;
	stream_start_tls(&c->server, t);
	return true;
}

void exchange_connected(struct conn *c)
{
	cleanup_buf struct buf out = { 0 };
	struct http_head h;
	struct exchange *x = &c->exchange;
	size_t len = (size_t)http_head_length(fifo_bytes(&c->client.in), c->client.in.len);

	buf_init(&out, FIFO_SIZE / 2);
	c->state = CONN_EXCHANGE;
	x->phase = EXCHANGE_BUSY;
	/* Also for requests without a secret: an earlier request may have stored it there. */
	x->is_guarded = secret_list_has_host(&c->hub->config.secrets, &c->target);
	/* Parses the same bytes again as for the decision; nothing was removed from the queue
	 * since. */
	if (http_parse_request(fifo_bytes(&c->client.in), len, &h, NULL) < 0 ||
	    !start_server_tls(c) || add_request(c, &h, &out) < 0 ||
	    (x->is_guarded &&
	     secret_filter_new(&c->hub->config.secrets, &c->target, &x->filter, NULL) < 0) ||
	    !fifo_add(&c->server.out, out.data, out.len)) {
		refuse_for(c, 503, "failed", "the request cannot be sent");
		return;
	}
	x->client_minor = h.minor;
	x->keep_client = h.keep_alive;
	x->chunk_request = h.framing == HTTP_CHUNKED;
	body_init(&x->request, &h);
	if (h.expects_continue && h.minor == 1)
		(void)fifo_add(&c->client.out, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	fifo_drop(&c->client.in, len);
	if (out.data)
		explicit_bzero(out.data, out.len);
}

static bool add_piece(struct fifo *q, const char *bytes, size_t len, bool chunked)
{
	char size[24];

	if (len == 0)
		return true;
	int n = snprintf(size, sizeof(size), "%zx\r\n", len);
	return (!chunked || fifo_add(q, size, (size_t)n)) && fifo_add(q, bytes, len) &&
	       (!chunked || fifo_add(q, "\r\n", 2));
}

static bool pump_request(struct conn *c)
{
	struct exchange *x = &c->exchange;
	bool progress = false;

	while (!x->request.is_done && c->client.in.len > 0 &&
	       fifo_room(&c->server.out) > (size_t)2 * PIECE_SPARE) {
		size_t room = fifo_room(&c->server.out) - PIECE_SPARE, used, len;
		size_t have = c->client.in.len < room ? c->client.in.len : room;
		const char *payload;
		if (body_take(&x->request, fifo_bytes(&c->client.in), have, &used, &payload, &len) <
		    0) {
			refuse_for(c, 400, "protocol", "bad request: broken chunks");
			return true;
		}
		if (!request_audit_count(c, len, 0))
			return true;
		if (!add_piece(&c->server.out, payload, len, x->chunk_request) ||
		    (x->request.is_done && x->chunk_request &&
		     !fifo_add(&c->server.out, "0\r\n\r\n", 5))) {
			refuse_for(c, 503, "failed", "out of memory");
			return true;
		}
		fifo_drop(&c->client.in, used);
		progress = true;
	}
	if (!x->request.is_done && c->client.is_eof && c->client.in.len == 0) {
		request_audit_end(c, "failed", "the request was not finished");
		conn_abort(c);
		return true;
	}
	return progress;
}

bool exchange_step(struct conn *c)
{
	if (c->exchange.phase == EXCHANGE_HEAD)
		return step_head(c);
	bool progress = pump_request(c);
	if (c->state == CONN_EXCHANGE && c->exchange.phase == EXCHANGE_BUSY)
		progress |= answer_step(c);
	return progress;
}
