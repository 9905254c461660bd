/* net/errand.c - a request of the host program itself. */
#include "net/errand.h"

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
#include "net/conn.h"
#include "net/url.h"

enum { REQUEST_MAX = 2 << 20, DROPPED_MAX = 65536 };

struct errand {
	struct hub *hub;
	char *method;
	struct strlist headers;
	void *body;
	size_t body_len;
	unsigned redirects, redirects_max;
	bool https_only;
	struct url url, next; /* next.path: where the answer under way leads to */
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

static void tell(struct errand *e, json_t *m)
{
	cleanup_free char *url = e->url.path ? url_text(&e->url) : NULL;

	if (m) {
		json_object_set_new(m, "type", json_string("fetched"));
		json_object_set_new(m, "url", url ? json_string(url) : json_null());
		json_object_set_new(m, "redirects", json_integer(e->redirects));
	}
	e->is_over = true;
	control_send(&e->hub->control, m);
	stream_shut(&e->out);
}

static void fail(struct errand *e, const char *kind, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void fail(struct errand *e, const char *kind, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tell(e, json_pack("{s:s, s:o}", "error", kind, "reason",
			  json_string_lossy(text, strlen(text))));
}

/* The connection is gone before its answer was whole: it was refused, or torn. */
static void fail_torn(struct errand *e)
{
	if (e->refusal)
		tell(e, json_deep_copy(e->refusal));
	else
		fail(e, "failed", "the answer of %s was cut off", e->url.host.name);
}

void errand_refused(struct errand *e, const json_t *body)
{
	json_decref(e->refusal);
	e->refusal = json_deep_copy(body);
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

/* One field in one line, and none that says where a message ends or whom it is for. */
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

static void drop_headers(struct errand *e, const char *const *names, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < e->headers.count; i++)
		if (header_is_any(e->headers.items[i], names, count))
			free(e->headers.items[i]);
		else
			e->headers.items[kept++] = e->headers.items[i];
	e->headers.count = kept;
}

static bool same_origin(const struct url *a, const struct url *b)
{
	return a->is_tls == b->is_tls && a->port == b->port && host_equal(&a->host, &b->host);
}

/* What was said to one host is not for another. */
static void change_place(struct errand *e)
{
	static const char *const private[] = { "Authorization", "Cookie", "Proxy-Authorization" };

	if (!same_origin(&e->url, &e->next))
		drop_headers(e, private, sizeof(private) / sizeof(*private));
	url_done(&e->url);
	e->url = e->next;
	e->next = (struct url){ 0 };
	e->redirects++;
}

/* 303, and what browsers have made of 301 and 302. */
static bool change_method(struct errand *e)
{
	static const char *const of_body[] = { "Content-Type", "Content-Encoding",
					       "Content-Language", "Content-Location" };
	bool is_post = str_eq(e->method, "POST");

	if (!(e->status == 303 && !str_eq(e->method, "HEAD")) &&
	    !((e->status == 301 || e->status == 302) && is_post))
		return true;
	free(e->method);
	e->method = str_dup("GET");
	free(e->body);
	e->body = NULL;
	e->body_len = 0;
	drop_headers(e, of_body, sizeof(of_body) / sizeof(*of_body));
	return e->method != NULL;
}

static int write_request(struct errand *e)
{
	cleanup_free char *url = url_text(&e->url);
	const char *text = url ? url : "";
	char port[8] = "";

	if (e->url.port != (e->url.is_tls ? 443 : 80))
		(void)snprintf(port, sizeof(port), ":%u", e->url.port);
	buf_clear(&e->request);
	e->sent = 0;
	int r = buf_printf(&e->request, "%s %s HTTP/1.1\r\nHost: %s%s\r\nConnection: close\r\n",
			   e->method, text, e->url.host.name, port);
	for (size_t i = 0; i < e->headers.count && r == 0; i++)
		r = buf_printf(&e->request, "%s\r\n", e->headers.items[i]);
	if (r == 0 && e->body)
		r = buf_printf(&e->request, "Content-Length: %zu\r\n", e->body_len);
	if (r == 0)
		r = buf_add_str(&e->request, "\r\n");
	if (r == 0 && e->body)
		r = buf_add(&e->request, e->body, e->body_len);
	return url ? r : -CORDON_NOMEM;
}

static void on_event(struct loop *l, int fd, uint32_t events, void *arg);

static void start_hop(struct errand *e)
{
	int pair[2];

	e->has_head = false;
	e->dropped = 0;
	json_decref(e->refusal);
	e->refusal = NULL;
	stream_close(&e->near);
	if (e->https_only && !e->url.is_tls) {
		fail(e, "denied", "%s: only https is allowed here", e->url.host.name);
		return;
	}
	if (e->url.has_userinfo) {
		fail(e, "invalid", "user names in a URL are refused");
		return;
	}
	if (write_request(e) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
		fail(e, "failed", "the request cannot be made");
		return;
	}
	stream_open(&e->near, e->hub->loop, pair[0], on_event, e);
	e->near.is_readable = true;
	if (conn_new(e->hub, pair[1], FRONT_ERRAND, NULL) < 0)
		fail(e, "failed", "out of memory");
}

/* True: the answer leads elsewhere. Where it ends is decided here already, its body is dropped. */
static bool is_redirect(struct errand *e, const struct http_head *h)
{
	cleanup_error struct cordon_error *problem = NULL;
	const struct http_field *to = http_field_find(h, "Location");

	if (!to || e->redirects_max == 0 ||
	    !(h->status == 301 || h->status == 302 || h->status == 303 || h->status == 307 ||
	      h->status == 308))
		return false;
	if (e->redirects >= e->redirects_max)
		fail(e, "limit", "too many redirects (%u)", e->redirects_max);
	else if (url_resolve(&e->url, to->value.data, to->value.len, &e->next, &problem) < 0)
		fail(e, "protocol", "%s redirects to no URL: %s", e->url.host.name,
		     cordon_error_message(problem));
	return true;
}

static void keep_fields(struct errand *e, const struct http_head *h)
{
	e->fields = json_array();
	for (size_t i = 0; i < h->field_count; i++) {
		char name[128];
		size_t len = h->fields[i].name.len < 127 ? h->fields[i].name.len : 127;
		for (size_t c = 0; c < len; c++)
			name[c] = (char)tolower((unsigned char)h->fields[i].name.data[c]);
		json_array_append_new(e->fields,
				      json_pack("[o, o]", json_string_lossy(name, len),
						json_string_lossy(h->fields[i].value.data,
								  h->fields[i].value.len)));
	}
}

static bool step_head(struct errand *e)
{
	struct http_head h;
	ptrdiff_t len = http_head_length(fifo_bytes(&e->near.in), e->near.in.len);

	if (len == 0 && !e->near.is_eof && !e->near.is_broken)
		return false;
	if (len <= 0 ||
	    http_parse_response(fifo_bytes(&e->near.in), (size_t)len, e->method, &h, NULL) < 0) {
		fail_torn(e);
		return true;
	}
	e->has_head = true;
	e->status = h.status;
	if (!is_redirect(e, &h))
		keep_fields(e, &h);
	body_init(&e->answer, &h);
	fifo_drop(&e->near.in, (size_t)len);
	return true;
}

static void finish_hop(struct errand *e)
{
	if (!e->next.path) {
		tell(e, json_pack("{s:i, s:O, s:I}", "status", (int)e->status, "headers", e->fields,
				  "bytes", (json_int_t)e->bytes));
		return;
	}
	bool ok = change_method(e);
	change_place(e);
	if (ok)
		start_hop(e);
	else
		fail(e, "failed", "out of memory");
}

/* A hop's own body is of no interest, the last one's goes out. False: no room, or broken. */
static bool take_piece(struct errand *e, bool is_hop, size_t room)
{
	size_t have = e->near.in.len < room ? e->near.in.len : room, used, len;
	const char *payload;

	if (body_take(&e->answer, fifo_bytes(&e->near.in), have, &used, &payload, &len) < 0 ||
	    (!is_hop && !fifo_add(&e->out.out, payload, len)))
		return false;
	e->dropped += is_hop ? len : 0;
	e->bytes += is_hop ? 0 : len;
	fifo_drop(&e->near.in, used);
	return true;
}

static bool step_body(struct errand *e)
{
	bool progress = false, is_hop = e->next.path;
	size_t room;

	while (!e->answer.is_done && e->near.in.len > 0 &&
	       (room = is_hop ? FIFO_SIZE : fifo_room(&e->out.out)) > 0) {
		if (!take_piece(e, is_hop, room)) {
			fail_torn(e);
			return true;
		}
		progress = true;
	}
	if (e->answer.is_done || e->dropped > DROPPED_MAX) {
		finish_hop(e);
		return true;
	}
	if (e->near.in.len == 0 && (e->near.is_eof || e->near.is_broken)) {
		fail_torn(e);
		return true;
	}
	return progress;
}

static bool feed(struct errand *e)
{
	size_t left = e->request.len - e->sent, room = fifo_room(&e->near.out);
	size_t n = left < room ? left : room;

	if (e->near.fd < 0 || n == 0 || !fifo_add(&e->near.out, e->request.data + e->sent, n))
		return false;
	e->sent += n;
	return true;
}

static void run(struct errand *e)
{
	for (bool progress = true; progress;) {
		progress = false;
		if (!e->is_over) {
			progress |= feed(e);
			/* A refusal comes before all of a request is read: what is written in vain
			 * is no reason to miss it. */
			progress |= stream_flush(&e->near) && !e->near.is_broken;
			e->near.is_broken = false;
			progress |= stream_fill(&e->near);
			progress |= e->has_head ? step_body(e) : step_head(e);
		}
		progress |= stream_flush(&e->out);
	}
	if (e->is_over)
		stream_close(&e->near);
	stream_watch(&e->near, true);
	stream_watch(&e->out, false);
}

static void on_event(struct loop *l, int fd, uint32_t events, void *arg)
{
	struct errand *e = arg;

	(void)l;
	stream_event(fd == e->near.fd ? &e->near : &e->out, events);
	run(e);
}

void errand_start(struct errand *e)
{
	if (!e)
		return;
	if (!e->is_over)
		start_hop(e);
	run(e);
}

static int read_headers(struct errand *e, const json_t *spec, struct cordon_error **reterr)
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
			fail(e, "invalid", "header %zu is not fit to be sent", i + 1);
		else if (strlist_add(&e->headers, line) < 0)
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

static int read_request(struct errand *e, const json_t *spec, struct cordon_error **reterr)
{
	cleanup_error struct cordon_error *problem = NULL;
	const char *url = NULL, *method = NULL, *body = NULL;
	int r = json_get_string(spec, "fetch", "url", &url, reterr);

	if (r == 0)
		r = json_get_string(spec, "fetch", "method", &method, reterr);
	if (r == 0)
		r = json_get_string(spec, "fetch", "body", &body, reterr);
	if (r == 0 && body)
		r = base64_decode(body, strlen(body), &e->body, &e->body_len, reterr);
	if (r < 0)
		return r;
	e->method = str_dup(method ? method : "GET");
	if (!e->method)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (!method_is_fit(e->method))
		fail(e, "invalid", "the method is not fit to be sent");
	else
		r = url_parse(url ? url : "", url ? strlen(url) : 0, &e->url, &problem);
	if (r == -CORDON_NOMEM)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (r < 0)
		fail(e, "invalid", "%s", cordon_error_message(problem));
	return 0;
}

static int read_spec(struct errand *e, const json_t *spec, struct cordon_error **reterr)
{
	static const char *const keys[] = { "url",  "method",    "headers",
					    "body", "redirects", "https_only" };
	uint64_t redirects = 0;
	int r = json_check_keys(spec, "fetch", keys, sizeof(keys) / sizeof(*keys), reterr);

	if (r == 0)
		r = json_get_uint(spec, "fetch", "redirects", &redirects, reterr);
	if (r == 0)
		r = json_get_bool(spec, "fetch", "https_only", &e->https_only, reterr);
	if (r == 0)
		r = read_request(e, spec, reterr);
	if (r == 0 && !e->is_over)
		r = read_headers(e, spec, reterr);
	e->redirects_max = (unsigned)redirects;
	return r;
}

int errand_new(struct hub *hub, const json_t *spec, int out_fd, struct errand **ret,
	       struct cordon_error **reterr)
{
	struct errand *e = mem_alloc(sizeof(*e));

	if (!e) {
		(void)close(out_fd);
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	e->hub = hub;
	e->near.fd = -1;
	buf_init(&e->request, REQUEST_MAX);
	stream_open(&e->out, hub->loop, out_fd, on_event, e);
	int r = read_spec(e, spec, reterr);
	if (r < 0) {
		errand_free(e);
		return r;
	}
	*ret = e;
	return 0;
}

struct errand *errand_free(struct errand *e)
{
	if (!e)
		return NULL;
	stream_close(&e->near);
	stream_close(&e->out);
	if (e->request.data)
		explicit_bzero(e->request.data, e->request.len);
	buf_done(&e->request);
	url_done(&e->url);
	url_done(&e->next);
	strlist_done(&e->headers);
	json_decref(e->refusal);
	json_decref(e->fields);
	free(e->method);
	free(e->body);
	free(e);
	return NULL;
}
