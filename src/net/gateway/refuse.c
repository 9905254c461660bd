/* net/gateway/refuse.c - answers for refused requests, and an audit event for every request. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "net/gateway/conn.h"
#include "net/gateway/socks.h"

enum {
	DENIALS_MAX = 1000,
	PATH_SHOWN = 512
}; /* events per execution; further ones are only counted */

void request_audit_start(struct conn *c, const char *method, const char *path)
{
	free(c->audit.path);
	c->audit = (struct request_audit){ .is_open = true, .started_ns = clock_now_ns() };
	(void)str_copy(c->audit.method, sizeof(c->audit.method), method);
	c->audit.path = str_dup(path);
	c->deadline = deadline_after_ms(c->hub->config.timeout_ms);
}

bool request_audit_count(struct conn *c, uint64_t out, uint64_t in)
{
	const struct config *limit = &c->hub->config;

	c->audit.bytes_out += out;
	c->audit.bytes_in += in;
	c->hub->bytes_out += out;
	c->hub->bytes_in += in;
	if (c->audit.bytes_out > limit->request_bytes)
		refuse_for(c, 413, "limit", "the request is longer than %llu bytes",
			   (unsigned long long)limit->request_bytes);
	else if (c->audit.bytes_in > limit->response_bytes)
		refuse_for(c, 413, "limit", "the answer is longer than %llu bytes",
			   (unsigned long long)limit->response_bytes);
	else if (!hub_spend(c->hub, out + in))
		refuse_for(c, 413, "limit", "more than %llu bytes in one execution",
			   (unsigned long long)limit->total_bytes);
	else
		return true;
	return false;
}

/* The guest or a server may have written the text, so it may not be UTF-8. */
static json_t *text_json(const char *text)
{
	return text ? json_string_lossy(text, strlen(text)) : json_null();
}

/* The path, shortened and without its query: enough to recognise it. */
static json_t *path_shown(const struct conn *c)
{
	const char *path = c->audit.path;
	size_t len = path ? strlen(path) : 0;

	return path ? json_string_lossy(path, len < PATH_SHOWN ? len : PATH_SHOWN) : json_null();
}

void request_audit_end(struct conn *c, const char *outcome, const char *problem)
{
	char address[ADDRESS_TEXT_SIZE];
	double ms = (double)(clock_now_ns() - c->audit.started_ns) / 1e6;

	if (!c->audit.is_open)
		return;
	c->audit.is_open = false;
	address_text(&c->address, address);
	control_send(
		&c->hub->control,
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:o, s:s, s:o, s:i, s:b, s:I, s:I, "
			  "s:f, s:s, s:o}",
			  "type", "event", "event", "network.request", "execution",
			  c->hub->execution, "decision", "allowed", "host", c->target.name, "port",
			  (int)c->port, "method", c->audit.method, "path", path_shown(c), "address",
			  address, "rule", text_json(c->verdict.rule), "status",
			  (int)c->audit.status, "secret", c->exchange.used_secret, "bytes_out",
			  (json_int_t)c->audit.bytes_out, "bytes_in", (json_int_t)c->audit.bytes_in,
			  "duration_ms", ms, "outcome", outcome, "problem", text_json(problem)));
}

void request_audit_denial(struct hub *hub, const char *operation, const struct host *h,
			  uint16_t port, const char *method, const struct rule_verdict *v)
{
	char target[HOST_TEXT_SIZE + 8];

	hub->denied++;
	if (++hub->denial_events > DENIALS_MAX)
		return;
	(void)snprintf(target, sizeof(target), port ? "%s:%u" : "%s", h->name, port);
	control_send(&hub->control,
		     json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:s?, s:s, s:o, s:o, s:o}",
			       "type", "event", "event", "network.denied", "execution",
			       hub->execution, "decision", "denied", "operation", operation,
			       "target", target, "host", h->name, "port", (int)port, "method",
			       method, "layer", "gateway", "rule", text_json(v->rule), "reason",
			       text_json(v->reason), "remedy", text_json(v->remedy)));
}

static const char *status_text(unsigned status)
{
	switch (status) {
	case 400:
		return "Bad Request";
	case 403:
		return "Forbidden";
	case 413:
		return "Content Too Large";
	case 414:
		return "URI Too Long";
	case 431:
		return "Request Header Fields Too Large";
	case 502:
		return "Bad Gateway";
	case 504:
		return "Gateway Timeout";
	default:
		return "Service Unavailable";
	}
}

static void say_http(struct conn *c, unsigned status, json_t *body)
{
	size_t len = 0;
	cleanup_free char *text = json_text(body, &len);
	char head[256];

	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\n"
			 "Content-Length: %zu\r\nConnection: close\r\n\r\n",
			 status, status_text(status), text ? len + 1 : 0);
	if (!text || fifo_room(&c->client.out) < (size_t)n + len + 1) {
		conn_abort(c);
		return;
	}
	(void)fifo_add(&c->client.out, head, (size_t)n);
	if (strcmp(c->audit.method, "HEAD") != 0) {
		(void)fifo_add(&c->client.out, text, len);
		(void)fifo_add(&c->client.out, "\n", 1);
	}
	conn_leave(c);
}

static enum socks_reply socks_code(unsigned status)
{
	return status == 403   ? SOCKS_DENIED
	       : status == 502 ? SOCKS_HOST_UNREACHABLE
			       : SOCKS_FAILURE;
}

static void say_tls(struct conn *c)
{
	static const char alert[] = "\x15\x03\x03\x00\x02\x02\x70"; /* fatal, unrecognized name */

	(void)fifo_add(&c->client.out, alert, sizeof(alert) - 1);
	conn_leave(c);
}

bool refuse_step(struct conn *c)
{
	const char *bytes = fifo_bytes(&c->client.in);
	size_t len = c->client.in.len;
	enum speech speech = SPEECH_MORE;

	if (len > 0)
		speech = bytes[0] == 0x16 ? SPEECH_TLS : tunnel_look_for_http(bytes, len);
	if (speech == SPEECH_MORE && !c->client.is_eof)
		return false;
	if (!c->refusal || speech == SPEECH_MORE || speech == SPEECH_OTHER) {
		conn_abort(c);
	} else if (speech == SPEECH_TLS) {
		say_tls(c);
	} else {
		if (len > 5 && memcmp(bytes, "HEAD ", 5) == 0)
			(void)str_copy(c->audit.method, sizeof(c->audit.method), "HEAD");
		say_http(c, c->refusal_status, c->refusal);
	}
	return true;
}

/* Sends the refusal in the protocol that the client uses at this point. Takes ownership of body. */
static void say(struct conn *c, unsigned status, json_t *body)
{
	uint8_t reply[SOCKS_REPLY_SIZE];

	if (c->front == FRONT_HOST) {
		host_request_refused(c->hub->request, body);
		conn_abort(c);
	} else if (c->is_socks) {
		socks_write_reply(socks_code(status), reply);
		(void)fifo_add(&c->client.out, reply, sizeof(reply));
		conn_leave(c);
	} else if (c->speaks_http && !c->exchange.has_answer_head) {
		say_http(c, status, body);
	} else if (c->state == CONN_CLASSIFY && c->client.in.len > 0 &&
		   fifo_bytes(&c->client.in)[0] == 0x16) {
		say_tls(c);
	} else if (c->front == FRONT_DIRECT &&
		   (c->state == CONN_INTAKE || c->state == CONN_WAITING)) {
		conn_refuse_later(c, status, json_incref(body));
	} else {
		conn_abort(c);
	}
	json_decref(body);
}

static bool is_answered(const struct conn *c)
{
	return c->state == CONN_REFUSED || c->state == CONN_LEAVING || c->state == CONN_CLOSED;
}

void refuse_by_rule(struct conn *c, const struct rule_verdict *v)
{
	if (is_answered(c))
		return;
	dial_cancel(c);
	request_audit_denial(c->hub, c->audit.path ? "network.request" : "network.connect",
			     &c->target, c->port, c->audit.method, v);
	c->audit.is_open = false;
	say(c, 403,
	    json_pack("{s:s, s:s, s:i, s:o, s:o, s:o}", "error", "denied", "host", c->target.name,
		      "port", (int)c->port, "rule", text_json(v->rule), "reason",
		      text_json(v->reason), "remedy", text_json(v->remedy)));
}

void refuse_mismatch(struct conn *c, const char *what, const char *other)
{
	struct rule_verdict v = { 0 };

	(void)snprintf(v.rule, sizeof(v.rule), "%s names the connected host", what);
	(void)snprintf(v.reason, sizeof(v.reason), "%s names %.255s, but the connection is to %s",
		       what, other, c->target.name);
	(void)snprintf(v.remedy, sizeof(v.remedy), "connect to %.255s itself", other);
	refuse_by_rule(c, &v);
}

void refuse_for(struct conn *c, unsigned status, const char *kind, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (is_answered(c))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	dial_cancel(c);
	c->audit.status = c->audit.status ? c->audit.status : status;
	request_audit_end(c, kind, text);
	say(c, status,
	    json_pack("{s:s, s:s, s:i, s:o}", "error", kind, "host", c->target.name, "port",
		      (int)c->port, "reason", text_json(text)));
}
