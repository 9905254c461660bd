/* net/gateway/tunnel.c - tunnels: checks the protocol of the first bytes, then passes bytes both
 * ways. */
#include <stdio.h>
#include <string.h>

#include "net/gateway/conn.h"
#include "net/gateway/socks.h"
#include "net/gateway/tls_sni.h"

void tunnel_connected(struct conn *c)
{
	static const char ok[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	uint8_t reply[SOCKS_REPLY_SIZE];

	if (c->is_socks) {
		socks_write_reply(SOCKS_OK, reply);
		(void)fifo_add(&c->client.out, reply, sizeof(reply));
	} else if (c->front == FRONT_PROXY) {
		(void)fifo_add(&c->client.out, ok, sizeof(ok) - 1);
	}
	c->is_socks = false;
	c->speaks_http = false;
	c->state = CONN_CLASSIFY;
}

/* Other protocols begin with a word too (EHLO), so the HTTP version at the end of the line
 * decides. */
enum speech tunnel_look_for_http(const char *bytes, size_t len)
{
	const char *end = memchr(bytes, '\n', len);
	size_t i = 0;

	while (i < len && bytes[i] >= 'A' && bytes[i] <= 'Z')
		i++;
	if (i == 0 || i > HTTP_METHOD_MAX || (i < len && bytes[i] != ' '))
		return SPEECH_OTHER;
	if (!end)
		return len < HTTP_HEAD_MAX ? SPEECH_MORE : SPEECH_OTHER;
	len = (size_t)(end - bytes);
	if (len > 0 && bytes[len - 1] == '\r')
		len--;
	return len > 9 && memcmp(bytes + len - 9, " HTTP/1.", 8) == 0 ? SPEECH_HTTP : SPEECH_OTHER;
}

/* SPEECH_TLS: it names our target, or no host. A wrong name was refused. */
static enum speech look_for_tls(struct conn *c)
{
	struct host name;

	switch (tls_sni_read((const uint8_t *)fifo_bytes(&c->client.in), c->client.in.len, &name)) {
	case TLS_SNI_MORE:
		return SPEECH_MORE;
	case TLS_SNI_NOT_TLS:
		return SPEECH_OTHER;
	case TLS_SNI_NO_NAME:
		return SPEECH_TLS;
	case TLS_SNI_BAD_NAME:
		refuse_mismatch(c, "TLS", "no valid host name");
		return SPEECH_TLS;
	case TLS_SNI_NAME:
		if (!host_agrees(&name, &c->target))
			refuse_mismatch(c, "TLS", name.name);
		return SPEECH_TLS;
	}
	return SPEECH_OTHER;
}

static void open_tls(struct conn *c)
{
	struct tls *t = NULL;

	if (tls_accept(c->hub->tls, &c->target, c->client.fd, &t, NULL) < 0) {
		refuse_for(c, 503, "failed", "TLS cannot be opened");
		return;
	}
	stream_start_tls(&c->client, t);
	c->is_opened = true;
	exchange_start(c);
}

static void refuse_speech(struct conn *c)
{
	struct rule_verdict v = { 0 };

	(void)snprintf(v.rule, sizeof(v.rule), "%s", c->verdict.rule);
	(void)snprintf(v.reason, sizeof(v.reason),
		       "only HTTP and TLS may be spoken to host %s on port %u", c->target.name,
		       c->port);
	(void)snprintf(v.remedy, sizeof(v.remedy),
		       "add {\"host\": \"%s\", \"port\": %u} to network.allow: a rule that names "
		       "the port opens it for any protocol",
		       c->target.name, c->port);
	refuse_by_rule(c, &v);
}

static bool move_from_server(struct conn *c);

/* A tunnel ends after a silence of the request timeout, and in any case at tunnel_end. */
static void heard(struct conn *c)
{
	deadline_ns silent = deadline_after_ms(c->hub->config.timeout_ms);

	if (c->state != CONN_TUNNEL)
		return;
	c->deadline = silent < c->tunnel_end ? silent : c->tunnel_end;
}

static void stand(struct conn *c)
{
	c->state = CONN_TUNNEL;
	c->tunnel_end = deadline_after_ms(c->hub->config.tunnel_ms);
	heard(c);
}

bool tunnel_step_classify(struct conn *c)
{
	bool inspect = hub_must_inspect(c->hub, &c->target, c->verdict.inspect);
	enum speech speech = SPEECH_MORE;
	const char *bytes = fifo_bytes(&c->client.in);

	if (c->client.in.len > 0)
		speech = bytes[0] == 0x16 ? look_for_tls(c)
					  : tunnel_look_for_http(bytes, c->client.in.len);
	if (c->state != CONN_CLASSIFY)
		return true;
	if (speech == SPEECH_MORE && c->client.is_eof && c->client.in.len > 0)
		speech = SPEECH_OTHER;
	switch (speech) {
	case SPEECH_MORE:
		if (c->client.is_eof || c->server.is_broken) {
			conn_leave(c);
			return true;
		}
		/* If any protocol is allowed, the server may send first. */
		return c->verdict.raw && !inspect && move_from_server(c);
	case SPEECH_TLS:
		if (inspect)
			open_tls(c);
		else
			stand(c);
		return true;
	case SPEECH_HTTP:
		exchange_start(c);
		return true;
	case SPEECH_OTHER:
		if (c->verdict.raw && !inspect)
			stand(c);
		else
			refuse_speech(c);
		return true;
	}
	return false;
}

static bool move_from_server(struct conn *c)
{
	bool progress = false;
	size_t n;

	/* After many bytes, expect more. */
	if (conn_is_bulk(c, c->audit.bytes_in >= BULK_FROM ? UINT64_MAX : 0)) {
		n = conn_bulk_step(c, UINT64_MAX, &progress);
	} else {
		n = fifo_move(&c->client.out, &c->server.in);
		progress = n > 0;
	}
	if (n > 0) {
		heard(c);
		(void)request_audit_count(c, 0, n);
	}
	if (c->server.is_eof && c->server.in.len == 0 && c->bulk.held == 0 &&
	    !c->client.shut_wanted) {
		stream_shut(&c->client);
		return true;
	}
	return progress;
}

bool tunnel_step(struct conn *c)
{
	if (c->server.is_broken) {
		/* The client still gets what the server sent before it failed. */
		(void)fifo_move(&c->client.out, &c->server.in);
		request_audit_end(c, "failed", "the server closed the connection");
		conn_abort(c);
		return true;
	}
	size_t n = fifo_move(&c->server.out, &c->client.in);
	if (n > 0 && !request_audit_count(c, n, 0))
		return true;
	if (n > 0)
		heard(c);
	bool progress = n > 0;
	if (c->client.is_eof && c->client.in.len == 0 && !c->server.shut_wanted) {
		stream_shut(&c->server);
		progress = true;
	}
	progress |= move_from_server(c);
	if (c->state == CONN_TUNNEL && c->client.is_shut && c->server.is_shut && c->client.is_eof &&
	    c->server.is_eof) {
		request_audit_end(c, "ok", NULL);
		c->state = CONN_CLOSED;
		return true;
	}
	return progress;
}
