/* serve/http/httpd.c - see httpd.h. */
#include "serve/http/httpd.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "serve/http/httpdoor.h"
#include "serve/http/httphost.h"

enum {
	CONNECTIONS = 64,
	STRANGERS = 192, /* connections allowed in addition to those being served */
	LEAVING = 64,    /* connections being closed */
	HEADER_MS = 10000,
	BODY_MS = 60000,
	HEADER_BYTES = 32 << 10, /* memory of a connection: its headers must fit */
	TIMEOUT_SECONDS = 60,    /* for a connection without activity */
	BLOCK = 16 << 10,
	HEADERS_MAX = 4,
};

struct httpd {
	struct MHD_Daemon *daemon;
	struct httphost hosts;
	struct httpdoor *door;
	char address[80];
	httpd_authorize_fn authorize;
	void *authorize_arg;
	const struct httpd_route *routes;
};

struct httpd_exchange {
	struct httpd *server;
	struct MHD_Connection *connection;
	const char *method;
	const struct httpd_route *route;
	struct buf body;
	unsigned refusal; /* HTTP status of the refusal; 0: allowed */
	char principal[HTTPD_PRINCIPAL_BYTES];
	struct {
		const char *name;
		char *value;
	} headers[HEADERS_MAX];
	char field[1024]; /* holds a header value that httpd_header had to trim */
	enum MHD_Result queued;
};

const char *httpd_address(const struct httpd *h)
{
	return h->address;
}

const char *httpd_method(const struct httpd_exchange *x)
{
	return x->method;
}

const char *httpd_principal(const struct httpd_exchange *x)
{
	return x->principal;
}

const char *httpd_body(const struct httpd_exchange *x, size_t *ret_len)
{
	*ret_len = x->body.len;
	return buf_text(&x->body);
}

int httpd_fd(struct httpd_exchange *x)
{
	const union MHD_ConnectionInfo *i =
		MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	return i ? i->connect_fd : -1;
}

const char *httpd_header(struct httpd_exchange *x, const char *name)
{
	const char *v = MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);

	if (!v)
		return NULL;
	v += strspn(v, " \t");
	size_t len = strlen(v);
	if (len == 0 || !strchr(" \t", v[len - 1]))
		return v;
	while (len > 0 && strchr(" \t", v[len - 1]))
		len--;
	if (len >= sizeof(x->field))
		return v; /* too long to match any value that callers compare with */
	memcpy(x->field, v, len);
	x->field[len] = '\0';
	return x->field;
}

void httpd_add_header(struct httpd_exchange *x, const char *name, const char *value)
{
	for (size_t i = 0; i < HEADERS_MAX; i++)
		if (!x->headers[i].name) {
			x->headers[i].name = name;
			x->headers[i].value = str_dup(value);
			return;
		}
}

/* Sends the response. If that fails, the connection is closed. */
static void queue(struct httpd_exchange *x, unsigned status, const char *type,
		  struct MHD_Response *r)
{
	if (!r) {
		x->queued = MHD_NO; /* the connection is closed */
		return;
	}
	if (type)
		(void)MHD_add_response_header(r, "Content-Type", type);
	(void)MHD_add_response_header(r, "Cache-Control", "no-store");
	(void)MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	for (size_t i = 0; i < HEADERS_MAX && x->headers[i].name; i++)
		if (x->headers[i].value)
			(void)MHD_add_response_header(r, x->headers[i].name, x->headers[i].value);
	x->queued = MHD_queue_response(x->connection, status, r);
	MHD_destroy_response(r);
}

void httpd_answer(struct httpd_exchange *x, unsigned status, const char *type, const void *body,
		  size_t len)
{
	queue(x, status, type,
	      MHD_create_response_from_buffer(len, (void *)(uintptr_t)(len ? body : ""),
					      MHD_RESPMEM_MUST_COPY));
}

static ssize_t read_stream(void *arg, uint64_t pos, char *bytes, size_t max)
{
	struct httpd_stream *s = arg;
	ssize_t n = s->read(bytes, max, s->arg);

	(void)pos;
	if (n > 0)
		return n;
	return n == 0 ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void end_stream(void *arg)
{
	cleanup_free struct httpd_stream *s = arg;

	s->done(s->arg);
}

void httpd_answer_stream(struct httpd_exchange *x, unsigned status, const char *type,
			 const struct httpd_stream *stream)
{
	struct httpd_stream *s = mem_alloc(sizeof(*s));
	struct MHD_Response *r = NULL;

	if (s) {
		*s = *stream;
		r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, s,
						      end_stream);
	}
	if (!r) {
		free(s);
		stream->done(stream->arg);
	}
	queue(x, status, type, r);
}

static enum MHD_Result count_header(void *arg, enum MHD_ValueKind kind, const char *key,
				    const char *value)
{
	static const char *const once[] = { "Host", "Origin", "Authorization", "Mcp-Session-Id" };
	unsigned *seen = arg;

	(void)kind;
	(void)value;
	for (size_t i = 0; i < sizeof(once) / sizeof(*once); i++)
		if (strcasecmp(key, once[i]) == 0)
			seen[i]++;
	return MHD_YES;
}

/* A header that may occur only once occurs twice. That can be an attempt to make two parsers see
 * different requests. */
static bool has_doubles(struct MHD_Connection *c)
{
	unsigned seen[4] = { 0 };

	(void)MHD_get_connection_values(c, MHD_HEADER_KIND, count_header, seen);
	return seen[0] > 1 || seen[1] > 1 || seen[2] > 1 || seen[3] > 1;
}

static struct httpdoor_guest *guest_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *i =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return i ? i->socket_context : NULL;
}

/* 0, or the status of the refusal. */
static unsigned judge(struct httpd_exchange *x, const char *path)
{
	struct httpd *h = x->server;
	const char *origin;

	if (has_doubles(x->connection))
		return MHD_HTTP_BAD_REQUEST;
	if (!httphost_has(&h->hosts, httpd_header(x, "Host")))
		return MHD_HTTP_FORBIDDEN;
	origin = httpd_header(x, "Origin");
	if (origin && !httphost_has_origin(&h->hosts, origin))
		return MHD_HTTP_FORBIDDEN;
	if (h->authorize &&
	    !h->authorize(httpd_header(x, "Authorization"), x->principal, h->authorize_arg))
		return MHD_HTTP_UNAUTHORIZED;
	for (const struct httpd_route *r = h->routes; r->path; r++)
		if (str_eq(r->path, path))
			x->route = r;
	if (!x->route)
		return MHD_HTTP_NOT_FOUND;
	return httpdoor_begin(h->door, guest_of(x->connection)) ? 0 : MHD_HTTP_SERVICE_UNAVAILABLE;
}

static void refuse(struct httpd_exchange *x)
{
	const char *why = x->refusal == MHD_HTTP_FORBIDDEN ? "this Host or Origin is not allowed\n"
			  : x->refusal == MHD_HTTP_UNAUTHORIZED      ? "a bearer token is needed\n"
			  : x->refusal == MHD_HTTP_NOT_FOUND         ? "not found\n"
			  : x->refusal == MHD_HTTP_CONTENT_TOO_LARGE ? "the request is too large\n"
			  : x->refusal == MHD_HTTP_SERVICE_UNAVAILABLE
				  ? "too many requests at once\n"
				  : "bad request\n";

	if (x->refusal == MHD_HTTP_UNAUTHORIZED)
		httpd_add_header(x, "WWW-Authenticate", "Bearer realm=\"cordon\"");
	if (x->refusal == MHD_HTTP_SERVICE_UNAVAILABLE)
		httpd_add_header(x, "Retry-After", "1");
	httpd_answer(x, x->refusal, "text/plain; charset=utf-8", why, strlen(why));
}

static struct httpd_exchange *exchange_new(struct httpd *h, struct MHD_Connection *c,
					   const char *method, const char *path)
{
	struct httpd_exchange *x = mem_alloc(sizeof(*x));

	if (!x)
		return NULL;
	x->server = h;
	x->connection = c;
	x->method = method;
	x->refusal = judge(x, path);
	buf_init(&x->body, x->route ? x->route->body_max : 0);
	return x;
}

/* libmicrohttpd calls it once with the headers, once per piece of the body, and once at the end. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *path,
				  const char *method, const char *version, const char *bytes,
				  size_t *len, void **state)
{
	struct httpd_exchange *x = *state;

	(void)version;
	if (!x) {
		*state = x = exchange_new(arg, c, method, path);
		if (!x)
			return MHD_NO;
		if (!x->refusal)
			return MHD_YES;
		refuse(x);
		return x->queued;
	}
	if (*len > 0) {
		if (!x->refusal && buf_add(&x->body, bytes, *len) < 0)
			x->refusal = MHD_HTTP_CONTENT_TOO_LARGE;
		*len = 0;
		return MHD_YES;
	}
	httpdoor_received(x->server->door, guest_of(c));
	if (x->refusal)
		refuse(x);
	else
		x->route->fn(x, x->route->arg);
	return x->queued;
}

static void on_end(void *arg, struct MHD_Connection *c, void **state,
		   enum MHD_RequestTerminationCode code)
{
	struct httpd_exchange *x = *state;

	(void)arg;
	(void)code;
	if (!x)
		return;
	httpdoor_end(x->server->door, guest_of(c));
	buf_done(&x->body);
	for (size_t i = 0; i < HEADERS_MAX; i++)
		free(x->headers[i].value);
	free(x);
	*state = NULL;
}

/* A connection was opened or is about to be closed. */
static void on_connection(void *arg, struct MHD_Connection *c, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct httpd *h = arg;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *i =
			MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
		*context = i ? httpdoor_enter(h->door, i->connect_fd) : NULL;
	} else {
		httpdoor_leave(h->door, *context);
		*context = NULL;
	}
}

/* The library never logs. */
static void be_silent(void *arg, const char *fmt, va_list ap)
{
	(void)arg;
	(void)fmt;
	(void)ap;
}

static struct MHD_Daemon *start_daemon(struct httpd *h, int fd, unsigned connections)
{
	return MHD_start_daemon(
		MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
			MHD_USE_ERROR_LOG,
		0, NULL, NULL, on_request, h, MHD_OPTION_EXTERNAL_LOGGER, be_silent, NULL,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_CONNECTION_LIMIT,
		connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_SECONDS, MHD_OPTION_END);
}

int httpd_start(const struct httpd_options *o, struct httpd **ret, struct cordon_error **reterr)
{
	struct httpd *h = mem_alloc(sizeof(*h));
	unsigned served = o->connections ? o->connections : (unsigned)CONNECTIONS;
	const struct httpdoor_options door = { .served = served,
					       .connected = served + STRANGERS,
					       .header_ms = o->header_ms ? o->header_ms : HEADER_MS,
					       .body_ms = BODY_MS };
	int fd = -1;

	if (!h)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	h->authorize = o->authorize;
	h->authorize_arg = o->authorize_arg;
	h->routes = o->routes;
	int r = httpdoor_new(&door, &h->door, reterr);
	if (r == 0)
		r = httphost_listen(&h->hosts, o->address, o->is_public, o->hosts, &fd, h->address,
				    sizeof(h->address), reterr);
	if (r == 0 && !(h->daemon = start_daemon(h, fd, door.connected + LEAVING))) {
		close(fd);
		r = err_set(reterr, CORDON_OS, "the HTTP server could not be started");
	}
	if (r < 0) {
		httphost_done(&h->hosts);
		httpdoor_free(h->door);
		free(h);
		return r;
	}
	*ret = h;
	return 0;
}

struct httpd *httpd_stop(struct httpd *h)
{
	if (!h)
		return NULL;
	MHD_stop_daemon(h->daemon);
	httpdoor_free(h->door);
	httphost_done(&h->hosts);
	free(h);
	return NULL;
}
