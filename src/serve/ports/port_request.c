/* serve/ports/port_request.c - see port_head.h: the request. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "serve/ports/port_head.h"

enum { WAIT_S = 60, WAIT_MAX_S = 600, DIGITS = 3 };

/* What is never passed on: it belongs to one connection, or is for us. */
static const char *const ours[] = {
	"Host",
	"Connection",
	"Proxy-Connection",
	"Keep-Alive",
	"TE",
	"Trailer",
	"Transfer-Encoding",
	"Content-Length",
	"Upgrade",
	"Expect",
	"Proxy-Authorization",
	"Forwarded",
	"X-Forwarded-For",
	"X-Forwarded-Host",
	"X-Forwarded-Proto",
	"X-Forwarded-Prefix",
	"X-Real-IP",
	"X-Access-Token",
	"E2B-Traffic-Access-Token",
	"E2b-Sandbox-Id",
	"E2b-Sandbox-Port",
	"Cordon-Timeout",
};

/* And under the server's own name: a browser would send here what is meant for other pages of that
 * name, and our clients their keys. */
static const char *const private[] = {
	"Authorization", "X-API-Key", "Cookie", "Cookie2", "Origin", "Referer",
};

struct writer {
	struct httpd_exchange *x;
	const struct port_proxy *proxy;
	const struct port_proxy_target *to;
	struct buf *out;
	struct buf connection; /* what Connection lists */
	bool is_websocket, is_bad;
	int r;
};

static bool is_in(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcasecmp(name, list[i]) == 0)
			return true;
	return false;
}

#define IN(name, list) is_in(name, list, sizeof(list) / sizeof(*(list)))

static bool is_name(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("!#$%&'*+-.^_`|~", *s))
			return false;
	return true;
}

/* Printable, without what would end a line. */
static bool is_value(const char *s)
{
	for (; *s; s++)
		if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f)
			return false;
	return true;
}

/* A key of ours that was sent to the wrong address. */
static bool is_key(const struct writer *w, const char *name, const char *value)
{
	if (strcasecmp(name, "X-API-Key") == 0)
		return w->proxy->is_key(value, w->proxy->arg);
	if (strcasecmp(name, "Authorization") != 0 || strncasecmp(value, "Bearer ", 7) != 0)
		return false;
	value += 7;
	return w->proxy->is_key(value + strspn(value, " "), w->proxy->arg);
}

static bool passes(const struct writer *w, const char *name, const char *value)
{
	if (IN(name, ours) || (w->to->prefix && IN(name, private)))
		return false;
	return !httpd_has_word(buf_text(&w->connection), name) && !is_key(w, name, value);
}

static bool collect(const char *name, const char *value, void *arg)
{
	struct writer *w = arg;

	if (strcasecmp(name, "Connection") == 0)
		w->r = buf_printf(&w->connection, "%s,", value);
	return w->r == 0;
}

static bool add(const char *name, const char *value, void *arg)
{
	struct writer *w = arg;

	w->is_bad = !is_name(name) || !is_value(value);
	if (!w->is_bad && passes(w, name, value))
		w->r = buf_printf(w->out, "%s: %s\r\n", name, value);
	return w->r == 0 && !w->is_bad;
}

bool port_head_is_websocket(struct httpd_exchange *x)
{
	const char *length = httpd_header(x, "Content-Length");
	bool has_body = httpd_header(x, "Transfer-Encoding") || (length && !str_eq(length, "0"));

	return str_eq(httpd_method(x), "GET") && !has_body && httpd_asks_upgrade(x, "websocket");
}

uint64_t port_head_wait_ms(struct httpd_exchange *x)
{
	const char *text = httpd_header(x, "Cordon-Timeout");
	size_t n = text ? strspn(text, "0123456789") : 0;
	unsigned long s = n > 0 && n <= DIGITS && !text[n] ? strtoul(text, NULL, 10) : WAIT_S;

	return 1000 * (s < 1 ? 1 : s > WAIT_MAX_S ? WAIT_MAX_S : s);
}

/* The name that the server sees: its own port of localhost, or the one that the client used. */
static int add_host(struct writer *w)
{
	const char *host = w->to->prefix ? NULL : httpd_header(w->x, "Host");
	bool is_own = host && httpd_is_for_port(w->x, NULL, NULL, 0);
	int r = is_own ? buf_printf(w->out, "Host: %s\r\n", host)
		       : buf_printf(w->out, "Host: localhost:%u\r\n", w->to->port);

	if (r == 0 && w->to->prefix && w->to->prefix[0])
		r = buf_printf(w->out, "X-Forwarded-Prefix: %s\r\n", w->to->prefix);
	return r < 0 ? r
		     : buf_printf(w->out, "X-Forwarded-Proto: %s\r\n",
				  httpd_has_tls(w->x) ? "https" : "http");
}

/* How the body is framed towards the server, and what follows it. */
static int add_framing(struct writer *w)
{
	const char *length = httpd_header(w->x, "Content-Length");
	int r = 0;

	if (httpd_header(w->x, "Transfer-Encoding"))
		r = buf_add_str(w->out, "Transfer-Encoding: chunked\r\n");
	else if (length)
		r = buf_printf(w->out, "Content-Length: %llu\r\n", strtoull(length, NULL, 10));
	if (r < 0)
		return r;
	return buf_add_str(w->out, w->is_websocket
					   ? "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
					   : "Connection: close\r\n\r\n");
}

int port_head_request(struct httpd_exchange *x, const struct port_proxy *proxy,
		      const struct port_proxy_target *to, struct buf *ret,
		      struct cordon_error **reterr)
{
	struct writer w = { .x = x,
			    .proxy = proxy,
			    .to = to,
			    .out = ret,
			    .is_websocket = port_head_is_websocket(x) };

	buf_init(ret, PORT_HEAD_MAX);
	buf_init(&w.connection, PORT_HEAD_MAX);
	httpd_visit_headers(x, collect, &w);
	if (w.r == 0)
		w.r = buf_printf(ret, "%s %s HTTP/1.1\r\n", httpd_method(x), to->path);
	if (w.r == 0)
		w.r = add_host(&w);
	if (w.r == 0)
		httpd_visit_headers(x, add, &w);
	if (w.r == 0)
		w.r = add_framing(&w);
	buf_done(&w.connection);
	if (w.is_bad)
		return err_set(reterr, CORDON_INVALID, "a header of the request is not valid");
	return w.r < 0 ? err_set(reterr, -w.r, "the headers of the request are too long") : 0;
}
