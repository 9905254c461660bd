/* net/gateway/dial.c - connects to a target: approval, resolution, the check of every address. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"
#include "net/gateway/conn.h"

static void connect_next(struct conn *c);

static void done(struct conn *c)
{
	int one = 1;

	c->is_connecting = c->is_proxy_greeting = false;
	(void)setsockopt(c->server.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->dialled = c->target;
	c->dialled_port = c->port;
	c->hub->allowed++;
	if (c->purpose == PURPOSE_TUNNEL)
		tunnel_connected(c);
	else
		exchange_connected(c);
}

/* Asks the host's own proxy to connect. The proxy resolves the name. */
static void greet_proxy(struct conn *c)
{
	const struct config *config = &c->hub->config;
	char line[2 * HOST_TEXT_SIZE + 256];

	int n = snprintf(line, sizeof(line),
			 "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n%s%.128s%s\r\n", c->target.name,
			 c->port, c->target.name, c->port,
			 config->proxy_authorization ? "Proxy-Authorization: " : "",
			 config->proxy_authorization ? config->proxy_authorization : "",
			 config->proxy_authorization ? "\r\n" : "");
	(void)fifo_add(&c->server.out, line, (size_t)n);
	c->is_proxy_greeting = true;
	c->is_connecting = false;
}

static void on_server(struct loop *l, int fd, uint32_t events, void *arg)
{
	struct conn *c = arg;

	(void)l;
	if (c->is_connecting) {
		int problem = 0;
		socklen_t len = sizeof(problem);
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &len) < 0)
			problem = errno;
		if (problem) {
			stream_close(&c->server);
			(void)str_copy(c->found.problem, sizeof(c->found.problem),
				       strerrordesc_np(problem) ? strerrordesc_np(problem) : "?");
			connect_next(c);
		} else if (c->hub->config.has_proxy) {
			greet_proxy(c);
		} else {
			done(c);
		}
	} else {
		stream_event(&c->server, events);
	}
	conn_run(c);
}

static void connect_next(struct conn *c)
{
	struct sockaddr_storage sa;
	uint16_t port = c->hub->config.has_proxy ? c->hub->config.proxy_port : c->port;

	while (c->next_address < c->found.count) {
		c->address = c->found.addresses[c->next_address++];
		socklen_t len = address_to_sockaddr(&c->address, port, &sa);
		int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, len) < 0 &&
		    errno != EINPROGRESS) {
			(void)str_copy(c->found.problem, sizeof(c->found.problem),
				       strerrordesc_np(errno) ? strerrordesc_np(errno) : "?");
			(void)close(fd);
			fd = -1;
		}
		if (fd < 0)
			continue;
		stream_open(&c->server, c->hub->loop, fd, on_server, c);
		c->is_connecting = true;
		if (loop_add_fd(c->hub->loop, fd, LOOP_OUT, on_server, c, &c->server.source, NULL) <
		    0) {
			stream_close(&c->server);
			c->is_connecting = false;
			break;
		}
		c->server.events = LOOP_OUT;
		return;
	}
	c->is_connecting = false;
	refuse_for(c, 502, "failed", "%s port %u: %s", c->target.name, c->port,
		   c->found.problem[0] ? c->found.problem : "no address can be reached");
}

/* Every address must be allowed, not just the first: DNS rebinding would use the others. */
static void check_addresses(struct conn *c)
{
	for (size_t i = 0; i < c->found.count; i++) {
		struct rule_verdict v;
		ruleset_decide_address(c->hub->config.rules, &c->target, &c->found.addresses[i],
				       c->port, &v);
		if (!v.allowed) {
			refuse_by_rule(c, &v);
			return;
		}
	}
	connect_next(c);
}

static void on_resolved(const struct resolve_result *result, void *arg)
{
	struct conn *c = arg;

	c->job = NULL;
	c->found = *result;
	c->next_address = 0;
	if (c->found.count == 0)
		refuse_for(c, 502, "failed", "host %s cannot be resolved: %s", c->target.name,
			   c->found.problem);
	else if (c->hub->config.has_proxy)
		connect_next(c); /* the proxy has its own addresses */
	else
		check_addresses(c);
	conn_run(c);
}

static void resolve(struct conn *c)
{
	const struct config *config = &c->hub->config;
	const struct host *name = config->has_proxy ? &config->proxy : &c->target;

	c->found = (struct resolve_result){ 0 };
	c->next_address = 0;
	if (host_is_literal(&c->target)) {
		c->found.addresses[0] = c->target.addr;
		c->found.count = 1;
		if (!config->has_proxy) {
			check_addresses(c);
			return;
		}
		struct rule_verdict v;
		ruleset_decide_address(config->rules, &c->target, &c->target.addr, c->port, &v);
		if (!v.allowed) {
			refuse_by_rule(c, &v);
			return;
		}
	}
	if (config->has_proxy && host_is_literal(&config->proxy)) {
		c->found.addresses[0] = config->proxy.addr;
		c->found.count = 1;
		connect_next(c);
		return;
	}
	cleanup_error struct cordon_error *e = NULL;
	if (resolver_start(c->hub->resolver, name, on_resolved, c, &c->job, &e) < 0)
		refuse_for(c, 503, "failed", "%s", cordon_error_message(e));
}

/* A kept connection is reused only for the same target. In a tunnel, TLS is decided once. Other
 * requests may use one port with and without TLS, which must not be mixed. */
static bool can_use_again(const struct conn *c)
{
	return c->server.fd >= 0 && !c->server.is_eof && !c->server.is_broken &&
	       host_equal(&c->dialled, &c->target) && c->dialled_port == c->port &&
	       (c->is_fixed || c->is_opened == (c->server.tls != NULL));
}

static void proceed(struct conn *c)
{
	if (can_use_again(c)) {
		done(c);
		return;
	}
	stream_close(&c->server);
	resolve(c);
}

static void ask(struct conn *c)
{
	if (approval_ask(c)) /* the execution's clock stops */
		c->deadline = deadline_after_ms(c->hub->config.approval_timeout_ms);
}

void dial_start(struct conn *c, enum conn_purpose purpose)
{
	c->purpose = purpose;
	c->state = CONN_WAITING;
	if (c->verdict.ask || c->hub->config.callback)
		ask(c);
	else
		proceed(c);
}

void dial_answer(struct conn *c, bool allow, const char *reason)
{
	c->ask_id = 0;
	c->deadline = deadline_after_ms(c->hub->config.timeout_ms);
	if (allow) {
		proceed(c);
	} else {
		struct rule_verdict v = { 0 };
		(void)snprintf(v.rule, sizeof(v.rule), "decision of the host program");
		(void)snprintf(v.reason, sizeof(v.reason), "%.500s",
			       reason ? reason : "the host program said no");
		(void)snprintf(v.remedy, sizeof(v.remedy), "approve the request");
		refuse_by_rule(c, &v);
	}
	conn_run(c);
}

void dial_cancel(struct conn *c)
{
	if (c->job)
		resolver_cancel(c->job);
	c->job = NULL;
	approval_leave(c);
	c->is_connecting = c->is_proxy_greeting = false;
}

/* The proxy's answer to our CONNECT. */
static bool step_proxy(struct conn *c)
{
	struct http_head h;
	ptrdiff_t len = http_head_length(fifo_bytes(&c->server.in), c->server.in.len);

	if (len == 0 && !c->server.is_eof && !c->server.is_broken)
		return false;
	if (len <= 0 ||
	    http_parse_response(fifo_bytes(&c->server.in), (size_t)len, "HEAD", &h, NULL) < 0) {
		refuse_for(c, 502, "failed", "the host's proxy does not answer in HTTP");
		return true;
	}
	if (h.status < 200 || h.status > 299) {
		refuse_for(c, 502, "failed", "the host's proxy refused %s port %u: status %u",
			   c->target.name, c->port, h.status);
		return true;
	}
	fifo_drop(&c->server.in, (size_t)len);
	done(c);
	return true;
}

bool dial_step(struct conn *c)
{
	/* A client that hung up does not wait for a decision, a lookup or a server, and keeps no
	 * slot. (A client that has only finished sending has sent something; after a tunnel's
	 * request it has not.) */
	if (c->purpose == PURPOSE_TUNNEL && c->client.is_eof && c->client.in.len == 0) {
		conn_abort(c);
		return true;
	}
	return c->is_proxy_greeting ? step_proxy(c) : false;
}
