/* net/gateway/guest_protocol.c - reads the guest's request: HTTP proxy, SOCKS5, a connection to a
 * fake address, or DNS. */
#include <string.h>

#include "net/gateway/conn.h"
#include "net/gateway/dns.h"
#include "net/gateway/socks.h"

/* Opens a tunnel to c->target. Host and port are decided before anything is resolved. */
static void open_tunnel(struct conn *c, const char *method)
{
	struct rule_query q = { .host = &c->target, .port = c->port };

	request_audit_start(c, method, NULL);
	ruleset_decide(c->hub->config.rules, &q, &c->verdict);
	if (!c->verdict.allowed) {
		refuse_by_rule(c, &c->verdict);
		return;
	}
	dial_start(c, PURPOSE_TUNNEL);
}

static bool step_connect(struct conn *c, const struct http_head *h)
{
	cleanup_error struct cordon_error *e = NULL;

	c->port = 0;
	if (host_parse_authority(h->target.data, h->target.len, &c->target, &c->port, &e) < 0 ||
	    c->port == 0) {
		refuse_for(c, 400, "protocol", "CONNECT: %s",
			   e ? cordon_error_message(e) : "the port is missing");
		return true;
	}
	if (h->framing != HTTP_NO_BODY) {
		refuse_for(c, 400, "protocol", "CONNECT with a body");
		return true;
	}
	c->is_fixed = true;
	fifo_drop(&c->client.in, h->size);
	open_tunnel(c, "CONNECT");
	return true;
}

static bool step_http(struct conn *c)
{
	cleanup_error struct cordon_error *e = NULL;
	struct http_head h;
	ptrdiff_t len = http_head_length(fifo_bytes(&c->client.in), c->client.in.len);

	if (len == 0)
		return false;
	c->speaks_http = true;
	if (len < 0) {
		refuse_for(c, 431, "limit", "the request's head is longer than %d bytes",
			   HTTP_HEAD_MAX);
		return true;
	}
	if (http_parse_request(fifo_bytes(&c->client.in), (size_t)len, &h, &e) < 0) {
		refuse_for(c, 400, "protocol", "bad request: %s", cordon_error_message(e));
		return true;
	}
	if (strcmp(h.method, "CONNECT") == 0)
		return step_connect(c, &h);
	exchange_start(c);
	return true;
}

static void reply_socks(struct conn *c, enum socks_reply reply)
{
	uint8_t bytes[SOCKS_REPLY_SIZE];

	socks_write_reply(reply, bytes);
	(void)fifo_add(&c->client.out, bytes, sizeof(bytes));
	conn_leave(c);
}

static bool step_socks(struct conn *c)
{
	const uint8_t *bytes = (const uint8_t *)fifo_bytes(&c->client.in);
	enum socks_reply reply = SOCKS_FAILURE;

	if (c->state == CONN_INTAKE) {
		ptrdiff_t n = socks_read_greeting(bytes, c->client.in.len);
		if (n == 0)
			return false;
		uint8_t answer[2] = { 5, n < 0 ? 0xff : 0 };
		(void)fifo_add(&c->client.out, answer, sizeof(answer));
		if (n < 0) {
			conn_leave(c);
			return true;
		}
		fifo_drop(&c->client.in, (size_t)n);
		c->state = CONN_GREETED;
		return true;
	}
	ptrdiff_t n = socks_read_request(bytes, c->client.in.len, &c->target, &c->port, &reply);
	if (n == 0)
		return false;
	if (n < 0) {
		reply_socks(c, reply);
		return true;
	}
	fifo_drop(&c->client.in, (size_t)n);
	c->is_socks = c->is_fixed = true;
	open_tunnel(c, "SOCKS");
	return true;
}

bool intake_step(struct conn *c)
{
	if (c->front == FRONT_DIRECT) {
		open_tunnel(c, "DIRECT");
		return true;
	}
	bool progress = false;
	if (c->client.in.len > 0)
		progress = c->state == CONN_GREETED || fifo_bytes(&c->client.in)[0] == 5
				   ? step_socks(c)
				   : step_http(c);
	/* A client that closes in the middle of its request will never complete it. */
	if (!progress && c->client.is_eof &&
	    (c->state == CONN_INTAKE || c->state == CONN_GREETED)) {
		c->state = CONN_CLOSED;
		return true;
	}
	return progress;
}

static enum dns_verdict look_up(const struct host *name, struct dns_addresses *ret, void *arg)
{
	struct hub *hub = arg;
	struct rule_query q = { .host = name };
	struct rule_verdict v;

	if (strcmp(name->name, "localhost") == 0) {
		(void)address_parse_v4("127.0.0.1", 9, &ret->v4);
		return DNS_HAS_ADDRESS;
	}
	ruleset_decide(hub->config.rules, &q, &v);
	if (!v.allowed) {
		request_audit_denial(hub, "network.resolve", name, 0, NULL, &v);
		return DNS_NO_SUCH_NAME;
	}
	if (fake_address_add(hub->fake_addresses, name, &ret->v4, &ret->v6) < 0)
		return DNS_FAILURE;
	if (!hub->has_v6)
		ret->v6.family = 0;
	return DNS_HAS_ADDRESS;
}

size_t intake_answer_dns(struct hub *hub, const uint8_t *query, size_t len, uint8_t *ret)
{
	return dns_answer(query, len, look_up, hub, ret);
}

bool intake_step_dns(struct conn *c)
{
	const uint8_t *bytes = (const uint8_t *)fifo_bytes(&c->client.in);
	uint8_t answer[2 + DNS_MAX];

	if (c->client.in.len < 2 || c->client.in.len < 2u + (bytes[0] << 8 | bytes[1])) {
		if (c->client.is_eof)
			conn_leave(c);
		return c->client.is_eof;
	}
	if (fifo_room(&c->client.out) < sizeof(answer))
		return false;
	size_t len = (size_t)(bytes[0] << 8 | bytes[1]);
	size_t n = len <= DNS_MAX ? intake_answer_dns(c->hub, bytes + 2, len, answer + 2) : 0;
	if (n == 0) {
		conn_abort(c);
		return true;
	}
	answer[0] = (uint8_t)(n >> 8);
	answer[1] = (uint8_t)n;
	fifo_drop(&c->client.in, 2 + len);
	(void)fifo_add(&c->client.out, answer, n + 2);
	return true;
}
