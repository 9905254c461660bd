/* net/gateway/host_request.c - see host_request.h. */
#include "net/gateway/host_request.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/gateway/conn.h"
#include "net/gateway/url.h"

enum { REQUEST_MAX = 2 << 20, DROPPED_MAX = 65536 };

struct host_request {
	struct hub *hub;
	char *method;
	struct strlist headers;
	void *body;
	size_t body_len;
	unsigned redirects, redirects_max;
	bool https_only;
	struct url url, next; /* next.path: where the current answer redirects to */
	struct stream near, out;
	struct buf request;
	size_t sent;
	struct body answer;
	bool has_head, is_over;
	json_t *refusal;
	unsigned status;
	json_t *fields;
	uint64_t bytes, dropped;
};

static void tell(struct host_request *r, json_t *m)
{
	cleanup_free char *url = r->url.path ? url_text(&r->url) : NULL;

	if (m) {
		json_object_set_new(m, "type", json_string("fetched"));
		json_object_set_new(m, "url", url ? json_string(url) : json_null());
		json_object_set_new(m, "redirects", json_integer(r->redirects));
	}
	r->is_over = true;
	control_send(&r->hub->control, m);
	stream_shut(&r->out);
}

static void fail(struct host_request *r, const char *kind, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void fail(struct host_request *r, const char *kind, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tell(r, json_pack("{s:s, s:o}", "error", kind, "reason",
			  json_string_lossy(text, strlen(text))));
}

/* The connection ended before the answer was complete: it was refused or lost. */
static void fail_torn(struct host_request *r)
{
	if (r->refusal)
		tell(r, json_deep_copy(r->refusal));
	else
		fail(r, "failed", "the answer of %s was cut off", r->url.host.name);
}

void host_request_refused(struct host_request *r, const json_t *body)
{
	json_decref(r->refusal);
	r->refusal = json_deep_copy(body);
}

static bool header_is(const char *line, const char *name)
{
	size_t len = strlen(name);
	return strncasecmp(line, name, len) == 0 && line[len] == ':';
}

static bool header_is_any(const char *line, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (header_is(line, names[i]))
			return true;
	return false;
}

/* True for a single field on one line that neither frames nor routes the message. */
static bool header_is_fit(const char *line)
{
	static const char *const ours[] = { "Host",       "Content-Length", "Transfer-Encoding",
					    "Connection", "Expect",         "Upgrade",
					    "TE",         "Trailer",        "Proxy-Connection" };
	const char *colon = strchr(line, ':');

	if (!colon || colon == line || header_is_any(line, ours, sizeof(ours) / sizeof(*ours)))
		return false;
	for (const char *p = line; p < colon; p++)
		if (!isalnum((unsigned char)*p) && !strchr("!#$%&'*+-.^_`|~", *p))
			return false;
	for (const char *p = colon; *p; p++)
		if ((unsigned char)*p < 0x20 && *p != '\t')
			return false;
	return strchr(line, 0x7f) == NULL;
}

static void drop_headers(struct host_request *r, const char *const *names, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->headers.count; i++)
		if (header_is_any(r->headers.items[i], names, count))
			free(r->headers.items[i]);
		else
			r->headers.items[kept++] = r->headers.items[i];
	r->headers.count = kept;
}

static bool same_origin(const struct url *a, const struct url *b)
{
	return a->is_tls == b->is_tls && a->port == b->port && host_equal(&a->host, &b->host);
}

/* A redirect to another host must not carry credentials. */
static void change_place(struct host_request *r)
{
	static const char *const private[] = { "Authorization", "Cookie", "Proxy-Authorization" };

	if (!same_origin(&r->url, &r->next))
		drop_headers(r, private, sizeof(private) / sizeof(*private));
	url_done(&r->url);
	r->url = r->next;
	r->next = (struct url){ 0 };
	r->redirects++;
}

/* 303, and 301 and 302 as browsers treat them: the next request is a GET without a body. */
static bool change_method(struct host_request *r)
{
	static const char *const of_body[] = { "Content-Type", "Content-Encoding",
					       "Content-Language", "Content-Location" };
	bool is_post = str_eq(r->method, "POST");

	if (!(r->status == 303 && !str_eq(r->method, "HEAD")) &&
	    !((r->status == 301 || r->status == 302) && is_post))
		return true;
	free(r->method);
	r->method = str_dup("GET");
	free(r->body);
	r->body = NULL;
	r->body_len = 0;
	drop_headers(r, of_body, sizeof(of_body) / sizeof(*of_body));
	return r->method != NULL;
}

static int write_request(struct host_request *q)
{
	cleanup_free char *url = url_text(&q->url);
	const char *text = url ? url : "";
	char port[8] = "";

	if (q->url.port != (q->url.is_tls ? 443 : 80))
		(void)snprintf(port, sizeof(port), ":%u", q->url.port);
	buf_clear(&q->request);
	q->sent = 0;
	int r = buf_printf(&q->request, "%s %s HTTP/1.1\r\nHost: %s%s\r\nConnection: close\r\n",
			   q->method, text, q->url.host.name, port);
	for (size_t i = 0; i < q->headers.count && r == 0; i++)
		r = buf_printf(&q->request, "%s\r\n", q->headers.items[i]);
	if (r == 0 && q->body)
		r = buf_printf(&q->request, "Content-Length: %zu\r\n", q->body_len);
	if (r == 0)
		r = buf_add_str(&q->request, "\r\n");
	if (r == 0 && q->body)
		r = buf_add(&q->request, q->body, q->body_len);
	return url ? r : -CORDON_NOMEM;
}

static void on_event(struct loop *l, int fd, uint32_t events, void *arg);

static void start_hop(struct host_request *r)
{
	int pair[2];

	r->has_head = false;
	r->dropped = 0;
	json_decref(r->refusal);
	r->refusal = NULL;
	stream_close(&r->near);
	if (r->https_only && !r->url.is_tls) {
		fail(r, "denied", "%s: only https is allowed here", r->url.host.name);
		return;
	}
	if (r->url.has_userinfo) {
		fail(r, "invalid", "user names in a URL are refused");
		return;
	}
	if (write_request(r) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
		fail(r, "failed", "the request cannot be made");
		return;
	}
	stream_open(&r->near, r->hub->loop, pair[0], on_event, r);
	r->near.is_readable = true;
	if (conn_new(r->hub, pair[1], FRONT_HOST, NULL) < 0)
		fail(r, "failed", "out of memory");
}

/* True: the answer is a redirect. Its target is decided here; its body is dropped. */
static bool is_redirect(struct host_request *r, const struct http_head *h)
{
	cleanup_error struct cordon_error *problem = NULL;
	const struct http_field *to = http_field_find(h, "Location");

	if (!to || r->redirects_max == 0 ||
	    !(h->status == 301 || h->status == 302 || h->status == 303 || h->status == 307 ||
	      h->status == 308))
		return false;
	if (r->redirects >= r->redirects_max)
		fail(r, "limit", "too many redirects (%u)", r->redirects_max);
	else if (url_resolve(&r->url, to->value.data, to->value.len, &r->next, &problem) < 0)
		fail(r, "protocol", "%s redirects to no URL: %s", r->url.host.name,
		     cordon_error_message(problem));
	return true;
}

static void keep_fields(struct host_request *r, const struct http_head *h)
{
	r->fields = json_array();
	for (size_t i = 0; i < h->field_count; i++) {
		char name[128];
		size_t len = h->fields[i].name.len < 127 ? h->fields[i].name.len : 127;
		for (size_t c = 0; c < len; c++)
			name[c] = (char)tolower((unsigned char)h->fields[i].name.data[c]);
		json_array_append_new(r->fields,
				      json_pack("[o, o]", json_string_lossy(name, len),
						json_string_lossy(h->fields[i].value.data,
								  h->fields[i].value.len)));
	}
}

static bool step_head(struct host_request *r)
{
	struct http_head h;
	ptrdiff_t len = http_head_length(fifo_bytes(&r->near.in), r->near.in.len);

	if (len == 0 && !r->near.is_eof && !r->near.is_broken)
		return false;
	if (len <= 0 ||
	    http_parse_response(fifo_bytes(&r->near.in), (size_t)len, r->method, &h, NULL) < 0) {
		fail_torn(r);
		return true;
	}
	r->has_head = true;
	r->status = h.status;
	if (!is_redirect(r, &h))
		keep_fields(r, &h);
	body_init(&r->answer, &h);
	fifo_drop(&r->near.in, (size_t)len);
	return true;
}

static void finish_hop(struct host_request *r)
{
	if (!r->next.path) {
		tell(r, json_pack("{s:i, s:O, s:I}", "status", (int)r->status, "headers", r->fields,
				  "bytes", (json_int_t)r->bytes));
		return;
	}
	bool ok = change_method(r);
	change_place(r);
	if (ok)
		start_hop(r);
	else
		fail(r, "failed", "out of memory");
}

/* Drops a redirect's body, keeps the last one. False: no room, or broken. */
static bool take_piece(struct host_request *r, bool is_hop, size_t room)
{
	size_t have = r->near.in.len < room ? r->near.in.len : room, used, len;
	const char *payload;

	if (body_take(&r->answer, fifo_bytes(&r->near.in), have, &used, &payload, &len) < 0 ||
	    (!is_hop && !fifo_add(&r->out.out, payload, len)))
		return false;
	r->dropped += is_hop ? len : 0;
	r->bytes += is_hop ? 0 : len;
	fifo_drop(&r->near.in, used);
	return true;
}

static bool step_body(struct host_request *r)
{
	bool progress = false, is_hop = r->next.path;
	size_t room;

	while (!r->answer.is_done && r->near.in.len > 0 &&
	       (room = is_hop ? FIFO_SIZE : fifo_room(&r->out.out)) > 0) {
		if (!take_piece(r, is_hop, room)) {
			fail_torn(r);
			return true;
		}
		progress = true;
	}
	if (r->answer.is_done || r->dropped > DROPPED_MAX) {
		finish_hop(r);
		return true;
	}
	if (r->near.in.len == 0 && (r->near.is_eof || r->near.is_broken)) {
		fail_torn(r);
		return true;
	}
	return progress;
}

static bool feed(struct host_request *r)
{
	size_t left = r->request.len - r->sent, room = fifo_room(&r->near.out);
	size_t n = left < room ? left : room;

	if (r->near.fd < 0 || n == 0 || !fifo_add(&r->near.out, r->request.data + r->sent, n))
		return false;
	r->sent += n;
	return true;
}

static void run(struct host_request *r)
{
	for (bool progress = true; progress;) {
		progress = false;
		if (!r->is_over) {
			progress |= feed(r);
			/* A refusal may arrive before the whole request was sent. A failed write
			 * must not hide it. */
			progress |= stream_flush(&r->near) && !r->near.is_broken;
			r->near.is_broken = false;
			progress |= stream_fill(&r->near);
			progress |= r->has_head ? step_body(r) : step_head(r);
		}
		progress |= stream_flush(&r->out);
	}
	if (r->is_over)
		stream_close(&r->near);
	stream_watch(&r->near, true);
	stream_watch(&r->out, false);
}

static void on_event(struct loop *l, int fd, uint32_t events, void *arg)
{
	struct host_request *r = arg;

	(void)l;
	stream_event(fd == r->near.fd ? &r->near : &r->out, events);
	run(r);
}

void host_request_start(struct host_request *r)
{
	if (!r)
		return;
	if (!r->is_over)
		start_hop(r);
	run(r);
}

static int read_headers(struct host_request *q, const json_t *spec, struct cordon_error **reterr)
{
	json_t *list = NULL, *item;
	size_t i;
	int r = json_get_array(spec, "fetch", "headers", &list, reterr);

	if (r < 0)
		return r;
	json_array_foreach(list, i, item)
	{
		const char *line = json_string_value(item);
		if (!line || !header_is_fit(line))
			fail(q, "invalid", "header %zu is not valid", i + 1);
		else if (strlist_add(&q->headers, line) < 0)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	return 0;
}

static bool method_is_fit(const char *method)
{
	size_t len = strlen(method);

	return len > 0 && len <= HTTP_METHOD_MAX &&
	       strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == len && !str_eq(method, "CONNECT") &&
	       !str_eq(method, "TRACE");
}

static int read_request(struct host_request *q, const json_t *spec, struct cordon_error **reterr)
{
	cleanup_error struct cordon_error *problem = NULL;
	const char *url = NULL, *method = NULL, *body = NULL;
	int r = json_get_string(spec, "fetch", "url", &url, reterr);

	if (r == 0)
		r = json_get_string(spec, "fetch", "method", &method, reterr);
	if (r == 0)
		r = json_get_string(spec, "fetch", "body", &body, reterr);
	if (r == 0 && body)
		r = base64_decode(body, strlen(body), &q->body, &q->body_len, reterr);
	if (r < 0)
		return r;
	q->method = str_dup(method ? method : "GET");
	if (!q->method)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (!method_is_fit(q->method))
		fail(q, "invalid", "the method is not valid");
	else
		r = url_parse(url ? url : "", url ? strlen(url) : 0, &q->url, &problem);
	if (r == -CORDON_NOMEM)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (r < 0)
		fail(q, "invalid", "%s", cordon_error_message(problem));
	return 0;
}

static int read_spec(struct host_request *q, const json_t *spec, struct cordon_error **reterr)
{
	static const char *const keys[] = { "url",  "method",    "headers",
					    "body", "redirects", "https_only" };
	uint64_t redirects = 0;
	int r = json_check_keys(spec, "fetch", keys, sizeof(keys) / sizeof(*keys), reterr);

	if (r == 0)
		r = json_get_uint(spec, "fetch", "redirects", &redirects, reterr);
	if (r == 0)
		r = json_get_bool(spec, "fetch", "https_only", &q->https_only, reterr);
	if (r == 0)
		r = read_request(q, spec, reterr);
	if (r == 0 && !q->is_over)
		r = read_headers(q, spec, reterr);
	q->redirects_max = (unsigned)redirects;
	return r;
}

int host_request_new(struct hub *hub, const json_t *spec, int out_fd, struct host_request **ret,
		     struct cordon_error **reterr)
{
	struct host_request *q = mem_alloc(sizeof(*q));

	if (!q) {
		(void)close(out_fd);
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	q->hub = hub;
	q->near.fd = -1;
	buf_init(&q->request, REQUEST_MAX);
	stream_open(&q->out, hub->loop, out_fd, on_event, q);
	int r = read_spec(q, spec, reterr);
	if (r < 0) {
		host_request_free(q);
		return r;
	}
	*ret = q;
	return 0;
}

struct host_request *host_request_free(struct host_request *r)
{
	if (!r)
		return NULL;
	stream_close(&r->near);
	stream_close(&r->out);
	if (r->request.data)
		explicit_bzero(r->request.data, r->request.len);
	buf_done(&r->request);
	url_done(&r->url);
	url_done(&r->next);
	strlist_done(&r->headers);
	json_decref(r->refusal);
	json_decref(r->fields);
	free(r->method);
	free(r->body);
	free(r);
	return NULL;
}
