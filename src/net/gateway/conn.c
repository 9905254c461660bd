/* net/gateway/conn.c - see conn.h. A connection's set-up, its steps and its end. */
#include "net/gateway/conn.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file.h"
#include "base/mem.h"

enum { LEAVING_MS = 2000, FIRST_WORD_MS = 5000 };

static void on_client(struct loop *l, int fd, uint32_t events, void *arg)
{
	struct conn *c = arg;

	(void)l, (void)fd;
	stream_event(&c->client, events);
	conn_run(c);
}

static bool is_named(const struct conn *c, const struct address *a, struct host *ret,
		     struct rule_verdict *ret_verdict)
{
	struct rule_query q = { .host = ret, .port = c->port };

	host_from_address(a, ret);
	ruleset_decide(c->hub->config.rules, &q, ret_verdict);
	return ret_verdict->allowed;
}

/* True if the policy names this loopback address. Then the host's loopback is meant, because
 * programs do not use a proxy for loopback. A program that connects to "localhost" may use either
 * address family. */
static bool is_named_loopback(const struct conn *c, const struct address *a, struct host *ret)
{
	struct rule_verdict v = { 0 };
	struct address other;

	if (is_named(c, a, ret, &v))
		return true;
	if (address_classify(a) != ADDRESS_LOOPBACK)
		return false;
	bool is_v4 = address_parse_v4("127.0.0.1", 9, &other) && a->family != 4;
	return (is_v4 || address_parse_v6("::1", 3, &other)) && is_named(c, &other, ret, &v);
}

/* Nothing listens at this address. If it is a loopback address, the program may have meant the
 * host's: the refusal then names the rule. */
static void refuse_unknown(struct conn *c, const struct address *a)
{
	struct rule_verdict v = { 0 };

	if (address_classify(a) != ADDRESS_LOOPBACK || is_named(c, a, &c->target, &v))
		conn_refuse_later(c, 0, NULL);
	else
		refuse_by_rule(c, &v);
}

static int set_up_direct(struct conn *c)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct address a;
	struct host own;

	if (getsockname(c->client.fd, (struct sockaddr *)&sa, &len) < 0 ||
	    !address_from_sockaddr((struct sockaddr *)&sa, &a, &c->port))
		return -CORDON_OS;
	const struct host *name = fake_address_find(c->hub->fake_addresses, &a);
	if (!name && is_named_loopback(c, &a, &own))
		name = &own;
	if (!name) { /* the guest's own loopback, or an address that we never gave out */
		refuse_unknown(c, &a);
		return 0;
	}
	c->target = *name;
	c->is_fixed = true;
	return 0;
}

static size_t *counter(struct conn *c)
{
	return c->front == FRONT_DNS ? &c->hub->dns_count : &c->hub->conn_count;
}

int conn_new(struct hub *hub, int fd, enum hub_front front, struct cordon_error **reterr)
{
	struct conn *c = mem_alloc(sizeof(*c));
	int one = 1;

	if (!c) {
		(void)close(fd);
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	c->hub = hub;
	c->front = front;
	c->id = ++hub->next_id;
	c->server.fd = -1;
	c->deadline = deadline_after_ms(hub->config.timeout_ms);
	stream_open(&c->client, hub->loop, fd, on_client, c);
	c->client.is_readable = true;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	int r = file_set_nonblock(fd, true);
	if (r == 0 && front == FRONT_DIRECT)
		r = set_up_direct(c);
	if (r < 0) {
		stream_abort(&c->client);
		free(c);
		return 0;
	}
	c->next = hub->conns;
	if (c->next)
		c->next->prev = c;
	hub->conns = c;
	*counter(c) += 1;
	conn_run(c);
	return 0;
}

static void conn_free(struct conn *c)
{
	struct hub *hub = c->hub;

	dial_cancel(c);
	if (c->audit.is_open)
		request_audit_end(c, "closed", NULL);
	exchange_done(c);
	stream_close(&c->client);
	stream_close(&c->server);
	bulk_close(&c->bulk);
	if (c->prev)
		c->prev->next = c->next;
	else
		hub->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	*counter(c) -= 1;
	free(c->dial_headers);
	free(c->audit.path);
	json_decref(c->refusal);
	free(c);
	hub_balance(hub);
}

void conn_abort(struct conn *c)
{
	if (c->state == CONN_CLOSED)
		return;
	stream_abort(&c->client);
	c->state = CONN_CLOSED;
}

void conn_leave(struct conn *c)
{
	if (c->state == CONN_CLOSED || c->state == CONN_LEAVING)
		return;
	dial_cancel(c);
	stream_close(&c->server);
	stream_shut(&c->client);
	c->state = CONN_LEAVING;
	c->deadline = deadline_after_ms(LEAVING_MS);
}

void conn_refuse_later(struct conn *c, unsigned status, json_t *body)
{
	json_decref(c->refusal);
	c->refusal = body;
	c->refusal_status = status;
	stream_close(&c->server);
	c->state = CONN_REFUSED;
	c->deadline = deadline_after_ms(FIRST_WORD_MS);
}

/* Reads and drops what still arrives: closing with unread bytes would send a reset, and the client
 * could lose the answer. */
static bool step_leaving(struct conn *c)
{
	bool progress = c->client.in.len > 0;

	fifo_drop(&c->client.in, c->client.in.len);
	if (c->client.is_broken || (c->client.is_shut && c->client.is_eof))
		c->state = CONN_CLOSED;
	return progress;
}

static bool step(struct conn *c)
{
	enum conn_state before = c->state;
	bool progress = false;

	switch (c->state) {
	case CONN_INTAKE:
	case CONN_GREETED:
		progress = c->front == FRONT_DNS ? intake_step_dns(c) : intake_step(c);
		break;
	case CONN_WAITING:
		progress = dial_step(c);
		break;
	case CONN_CLASSIFY:
		progress = tunnel_step_classify(c);
		break;
	case CONN_TUNNEL:
		progress = tunnel_step(c);
		break;
	case CONN_EXCHANGE:
		progress = exchange_step(c);
		break;
	case CONN_REFUSED:
		progress = refuse_step(c);
		break;
	case CONN_LEAVING:
		progress = step_leaving(c);
		break;
	case CONN_CLOSED:
		return false;
	}
	return progress || c->state != before;
}

/* A client that reset its connection gets no answer. */
static bool is_over(const struct conn *c)
{
	return c->state == CONN_CLOSED || c->client.is_broken;
}

void conn_run(struct conn *c)
{
	if (c->is_running) /* called from within a step: the loop below continues anyway */
		return;
	c->is_running = true;
	for (bool progress = true; progress && !is_over(c);) {
		progress = stream_fill(&c->client);
		if (!c->is_connecting)
			progress |= stream_fill(&c->server);
		progress |= step(c);
		if (c->state == CONN_CLOSED)
			break;
		progress |= stream_flush(&c->client);
		if (!c->is_connecting)
			progress |= stream_flush(&c->server);
	}
	c->is_running = false;
	if (is_over(c)) {
		conn_free(c);
		return;
	}
	stream_watch(&c->client, true);
	if (!c->is_connecting)
		stream_watch(&c->server, true);
}

static void refuse_late(struct conn *c)
{
	const struct config *config = &c->hub->config;
	bool is_old = c->state == CONN_TUNNEL && deadline_is_over(c->tunnel_end);

	if (c->ask_id != 0)
		refuse_for(c, 504, "timeout", "nobody approved it within %llu ms",
			   (unsigned long long)config->approval_timeout_ms);
	else
		refuse_for(c, 504, "timeout",
			   is_old                    ? "the tunnel was open for %llu ms"
			   : c->state == CONN_TUNNEL ? "nothing was sent in the tunnel for %llu ms"
						     : "no answer within %llu ms",
			   (unsigned long long)(is_old ? config->tunnel_ms : config->timeout_ms));
}

void conn_tick(struct conn *c)
{
	if (c->deadline == 0 || !deadline_is_over(c->deadline))
		return;
	if (c->audit.is_open && c->state != CONN_LEAVING) {
		refuse_late(c);
		c->deadline = deadline_after_ms(LEAVING_MS);
	} else if (c->state == CONN_EXCHANGE) {
		conn_leave(c); /* idle between requests */
	} else {
		conn_abort(c);
	}
	conn_run(c);
}

/* What the limits still leave. The byte that exceeds a limit must take the usual path, which
 * reports it. */
static uint64_t budget(const struct conn *c)
{
	const struct config *limit = &c->hub->config;
	uint64_t one = limit->response_bytes > c->audit.bytes_in
			       ? limit->response_bytes - c->audit.bytes_in
			       : 0;
	uint64_t all = limit->total_bytes > c->hub->total_bytes
			       ? limit->total_bytes - c->hub->total_bytes
			       : 0;

	return one < all ? one : all;
}

bool conn_is_bulk(struct conn *c, uint64_t left)
{
	if (c->bulk.held > 0)
		return true;
	c->server.is_bypassed = !c->client.tls && !c->server.tls && left >= BULK_FROM &&
				budget(c) >= BULK_FROM && !c->server.is_eof;
	if (!c->server.is_bypassed || !bulk_is_ready(&c->server, &c->client))
		return false;
	c->server.is_bypassed = bulk_open(&c->bulk, &c->hub->bulks);
	return c->server.is_bypassed;
}

size_t conn_bulk_step(struct conn *c, uint64_t max, bool *ret_progress)
{
	uint64_t most = budget(c);

	return bulk_move(&c->bulk, &c->server, &c->client, most < max ? most : max, ret_progress);
}

struct conn *conn_by_ask(struct hub *hub, uint64_t ask_id)
{
	for (struct conn *c = hub->conns; c; c = c->next)
		if (c->ask_id == ask_id)
			return c;
	return NULL;
}
