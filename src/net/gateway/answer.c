/* net/gateway/answer.c - the server's answer: checks it, counts it, frames it anew and removes
 * secrets. */
#include <stdio.h>
#include <string.h>

#include "net/gateway/conn.h"

enum { SPARE = 64, FILTER_SPARE = 20480 };

static void fail_server(struct conn *c)
{
	const char *problem = c->server.tls ? tls_problem(c->server.tls) : "";

	refuse_for(c, 502, "failed", "host %s: %s", c->target.name,
		   problem[0] ? problem : "the server closed the connection without an answer");
}

static bool is_encoded(const struct http_head *h)
{
	const struct http_field *f = http_field_find(h, "Content-Encoding");
	return f && !http_slice_is(f->value, "identity");
}

/* Decides how the payload is framed towards the client, and whether another request may follow. */
static void choose_framing(struct conn *c, const struct http_head *h)
{
	struct exchange *x = &c->exchange;
	bool is_sized = h->framing == HTTP_NO_BODY || h->framing == HTTP_LENGTH;

	x->chunk_answer = !is_sized && x->client_minor == 1;
	x->keep_server = h->keep_alive;
	x->keep_client &= is_sized || x->chunk_answer;
	x->keep_client &=
		x->request.is_done; /* answered early: the client's next bytes are not a request */
	body_init(&x->answer, h);
}

static int add_field(struct buf *out, const struct http_field *f)
{
	int r = buf_add(out, f->name.data, f->name.len);

	if (r == 0)
		r = buf_add_str(out, ": ");
	if (r == 0)
		r = buf_add(out, f->value.data, f->value.len);
	return r < 0 ? r : buf_add_str(out, "\r\n");
}

static int add_head(struct conn *c, const struct http_head *h, struct buf *out)
{
	struct exchange *x = &c->exchange;
	const char *connection = !x->keep_client        ? "Connection: close\r\n"
				 : x->client_minor == 0 ? "Connection: keep-alive\r\n"
							: "";
	int r = buf_printf(out, "HTTP/1.1 %u %.*s\r\n", h->status, (int)h->reason.len,
			   h->reason.data ? h->reason.data : "");

	for (size_t i = 0; i < h->field_count && r == 0; i++)
		if (!http_field_is_hop(h, &h->fields[i]))
			r = add_field(out, &h->fields[i]);
	if (r < 0)
		return r;
	if (x->filter)
		secret_filter_text(x->filter, out->data, out->len);
	return buf_printf(out, "%s%s\r\n", x->chunk_answer ? "Transfer-Encoding: chunked\r\n" : "",
			  connection);
}

static void take_head(struct conn *c, const struct http_head *h)
{
	uint64_t max = c->hub->config.response_bytes;
	cleanup_buf struct buf out = { 0 };

	buf_init(&out, FIFO_SIZE / 2);
	c->audit.status = h->status;
	if (h->status == 101) {
		refuse_for(c, 502, "failed", "upgrades are not passed on");
	} else if (c->exchange.is_guarded && is_encoded(h)) {
		refuse_for(c, 502, "failed",
			   "the answer is compressed and cannot be searched for the secret");
	} else if (h->framing == HTTP_LENGTH && h->length > max) {
		refuse_for(c, 413, "limit", "the answer has %llu bytes, %llu are allowed",
			   (unsigned long long)h->length, (unsigned long long)max);
	} else {
		choose_framing(c, h);
		if (add_head(c, h, &out) < 0 || !fifo_add(&c->client.out, out.data, out.len)) {
			refuse_for(c, 502, "limit", "the answer's head is too long");
			return;
		}
		c->exchange.has_answer_head = true;
		fifo_drop(&c->server.in, h->size);
	}
}

static bool step_head(struct conn *c)
{
	cleanup_error struct cordon_error *e = NULL;
	struct http_head h;
	ptrdiff_t len = http_head_length(fifo_bytes(&c->server.in), c->server.in.len);

	if (len == 0) {
		if (!c->server.is_eof && !c->server.is_broken)
			return false;
		fail_server(c);
		return true;
	}
	if (fifo_room(&c->client.out) < FIFO_SIZE / 2)
		return false;
	if (len < 0)
		refuse_for(c, 502, "limit", "the answer's head is longer than %d bytes",
			   HTTP_HEAD_MAX);
	else if (http_parse_response(fifo_bytes(&c->server.in), (size_t)len, c->audit.method, &h,
				     &e) < 0)
		refuse_for(c, 502, "failed", "bad answer of %s: %s", c->target.name,
			   cordon_error_message(e));
	else if (h.status < 200 && h.status != 101)
		fifo_drop(&c->server.in,
			  (size_t)len); /* drops an interim answer; we sent our own already */
	else
		take_head(c, &h);
	return true;
}

static bool add_piece(struct conn *c, const char *bytes, size_t len, bool is_last)
{
	struct fifo *q = &c->client.out;
	bool chunked = c->exchange.chunk_answer;
	char size[24];

	if (c->exchange.filter) {
		bytes = secret_filter_feed(c->exchange.filter, bytes, len, is_last, &len);
		if (!bytes)
			return false;
	}
	int n = snprintf(size, sizeof(size), "%zx\r\n", len);
	if (len > 0 && ((chunked && !fifo_add(q, size, (size_t)n)) || !fifo_add(q, bytes, len) ||
			(chunked && !fifo_add(q, "\r\n", 2))))
		return false;
	return !is_last || !chunked || fifo_add(q, "0\r\n\r\n", 5);
}

static void finish(struct conn *c)
{
	struct exchange *x = &c->exchange;
	bool keep = x->keep_client && x->request.is_done && !c->client.is_eof;

	request_audit_end(c, "ok", NULL);
	if (!x->keep_server || !x->request.is_done)
		stream_close(&c->server);
	exchange_done(c);
	if (keep)
		c->deadline = deadline_after_ms(c->hub->config.timeout_ms);
	else
		conn_leave(c);
}

static void fail_torn(struct conn *c)
{
	request_audit_end(c, "failed", "the answer was cut off");
	conn_abort(c); /* with a reset, so that half an answer cannot pass for a whole one */
}

/* Moves one piece of the payload; false: c was refused. */
static bool move_piece(struct conn *c, size_t spare)
{
	struct body *b = &c->exchange.answer;
	size_t room = fifo_room(&c->client.out) - spare, used, len;
	size_t have = c->server.in.len < room ? c->server.in.len : room;
	const char *payload;

	if (body_take(b, fifo_bytes(&c->server.in), have, &used, &payload, &len) < 0) {
		fail_torn(c);
		return false;
	}
	if (!request_audit_count(c, 0, len))
		return false;
	if (!add_piece(c, payload, len, b->is_done)) {
		fail_torn(c);
		return false;
	}
	fifo_drop(&c->server.in, used);
	return true;
}

static bool has_ended(const struct stream *s)
{
	return s->in.len == 0 && (s->is_eof || s->is_broken);
}

/* The server closed its side. For some bodies that is the end, for others a loss. */
static bool end_with_server(struct conn *c)
{
	struct body *b = &c->exchange.answer;

	if (b->framing != HTTP_TO_CLOSE || c->server.is_broken || !add_piece(c, "", 0, true)) {
		fail_torn(c);
		return false;
	}
	b->is_done = true;
	return true;
}

/* A body of known length that is passed on unchanged: uses the large buffer (bulk.h). */
static bool move_bulk(struct conn *c)
{
	struct body *b = &c->exchange.answer;
	bool progress = false;

	if (b->framing != HTTP_LENGTH || c->exchange.filter || !conn_is_bulk(c, b->left))
		return false;
	size_t n = conn_bulk_step(c, b->left, &progress);
	b->left -= n;
	b->is_done = b->left == 0 && c->bulk.held == 0;
	c->server.is_bypassed = !b->is_done;
	(void)request_audit_count(c, 0, n);
	return progress;
}

static bool step_body(struct conn *c)
{
	struct body *b = &c->exchange.answer;
	size_t spare = c->exchange.filter ? FILTER_SPARE : SPARE;
	bool progress = move_bulk(c);

	if (c->state != CONN_EXCHANGE || (c->bulk.held > 0 && !c->server.is_broken))
		return progress;
	while (!b->is_done && c->server.in.len > 0 && fifo_room(&c->client.out) > 2 * spare) {
		if (!move_piece(c, spare))
			return true;
		progress = true;
	}
	if (!b->is_done && has_ended(&c->server) && !end_with_server(c))
		return true;
	if (b->is_done)
		finish(c);
	return progress || c->exchange.phase == EXCHANGE_HEAD;
}

bool answer_step(struct conn *c)
{
	return c->exchange.has_answer_head ? step_body(c) : step_head(c);
}
