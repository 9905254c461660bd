/* serve/http/httpd.c - see httpd.h. */
#include "serve/http/httpd.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/condvar.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/str.h"
#include "serve/http/httpd_exchange.h"
#include "serve/http/problem.h"

enum {
	REQUESTS = 64,
	STRANGERS = 192, /* connections allowed in addition to those being served */
	LEAVING = 64,    /* connections being closed */
	HEADER_MS = 10000,
	BODY_MS = 60000, /* for each BODY_STEP */
	BODY_STEP = 4 << 20,
	END_MS = 3000,           /* for the last answers */
	HEADER_BYTES = 32 << 10, /* memory of a connection: its headers must fit */
	TIMEOUT_SECONDS = 60,    /* for a connection without activity */
};

const char *httpd_address(const struct httpd *h)
{
	return h->address;
}

unsigned httpd_connections(struct httpd *h)
{
	return h->connections;
}

/* ---- before the handler */

/* What a request says about itself, as far as two parsers could differ about it. */
struct heading {
	unsigned seen[6];
	bool has_length, has_coding, has_odd_name;
};

/* With a space before the colon, for example: some parsers take that for the same name. */
static bool is_odd_name(const char *name)
{
	static const char plain[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return !*name || name[strspn(name, plain)];
}

static enum MHD_Result note_header(void *arg, enum MHD_ValueKind kind, const char *key,
				   const char *value)
{
	static const char *const once[] = { "Host",      "Origin",         "Authorization",
					    "X-API-Key", "Mcp-Session-Id", "Content-Length" };
	struct heading *h = arg;

	(void)kind;
	(void)value;
	for (size_t i = 0; i < sizeof(once) / sizeof(*once); i++)
		if (strcasecmp(key, once[i]) == 0)
			h->seen[i]++;
	h->has_length |= strcasecmp(key, "Content-Length") == 0;
	h->has_coding |= strcasecmp(key, "Transfer-Encoding") == 0;
	h->has_odd_name |= is_odd_name(key);
	return MHD_YES;
}

/* Whether another server on the way could see another request in the same bytes: a header that may
 * occur only once occurs twice, the length of the body is told in two ways, or a name is none. */
static bool is_ambiguous(struct MHD_Connection *c)
{
	struct heading h = { 0 };
	bool is = false;

	(void)MHD_get_connection_values(c, MHD_HEADER_KIND, note_header, &h);
	for (size_t i = 0; i < sizeof(h.seen) / sizeof(*h.seen); i++)
		is |= h.seen[i] > 1;
	return is || (h.has_length && h.has_coding) || h.has_odd_name;
}

struct httpdoor_guest *httpd_guest(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *i =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return i ? i->socket_context : NULL;
}

/* Whether a browser says that a page of another origin sends this. Host and Origin are compared by
 * name, and a page of another port has the same: a server in a sandbox may have made it. Links
 * lead here all the same. */
static bool is_foreign_page(struct httpd_exchange *x)
{
	const char *site = httpd_header(x, "Sec-Fetch-Site");
	bool is_link = str_eq(httpd_header(x, "Sec-Fetch-Mode"), "navigate") &&
		       (str_eq(x->method, "GET") || str_eq(x->method, "HEAD"));

	return site && !str_eq(site, "same-origin") && !str_eq(site, "none") && !is_link;
}

static bool is_our_name(struct httpd_exchange *x)
{
	struct httpd *h = x->server;
	const char *origin = httpd_header(x, "Origin"), *host = httpd_header(x, "Host");
	bool is_port = httpd_is_for_port(x, NULL, NULL, 0);

	if (h->is_unix && !origin)
		return true;
	if (!is_port && (!httphost_has(&h->hosts, host) || is_foreign_page(x)))
		return false;
	return !origin || httphost_has_origin(&h->hosts, origin) ||
	       (is_port && httphost_is_origin(host, origin));
}

bool httpd_is_for_port(struct httpd_exchange *x, unsigned *ret_port, char *ret_id, size_t size)
{
	const char *name = httphost_split(httpd_header(x, "Host"), ret_port, ret_id, size);

	return name && httphost_has(&x->server->hosts, name);
}

bool httpd_has_tls(const struct httpd_exchange *x)
{
	return x->server->options.tls_cert != NULL;
}

/* Whether the body is announced as larger than the route takes. */
static bool is_too_large(struct httpd_exchange *x)
{
	const char *length = httpd_header(x, "Content-Length");

	return length && strtoull(length, NULL, 10) > x->match.route->body_max;
}

/* Who sends it, and whether that one may. 0, or the status of the refusal. */
static unsigned authorize(struct httpd_exchange *x)
{
	const struct httpd_options *o = &x->server->options;
	const struct httpd_route *r = x->match.route;

	if (r->authorize)
		return r->authorize(x, r->right, x->match.arg);
	return o->authorize && r->right != HTTPD_OPEN ? o->authorize(x, r->right, o->authorize_arg)
						      : 0;
}

/* Whether there is room for it. 0, or the status of the refusal. */
static unsigned admit(struct httpd_exchange *x)
{
	struct httpd *h = x->server;
	const struct httpd_route *r = x->match.route;

	if (h->is_draining && !(r->flags & (HTTPD_QUICK | HTTPD_AT_END)))
		return 503;
	/* What anybody may ask takes no place: it is quick. */
	if (r->right == HTTPD_OPEN && !r->authorize && (r->flags & HTTPD_QUICK))
		return 0;
	/* What ends something has a place even if all others are taken: they may wait for it. */
	bool ends = !(r->flags & HTTPD_BODY_STREAM) && str_eq(x->method, "DELETE");
	bool is_counted = h->options.admit && !(r->flags & HTTPD_AT_END) && !ends;
	x->is_admitted = is_counted && h->options.admit(x, h->options.admit_arg);
	if (is_counted && !x->is_admitted)
		return 429;
	return httpdoor_begin(h->door, httpd_guest(x->connection)) ? 0 : 503;
}

/* 0, or the status of the refusal. A name of a sandbox's port never leads to our own paths. */
static unsigned find_route(struct httpd_exchange *x, const char *path)
{
	const struct httpd_options *o = &x->server->options;

	x->match.route = o->divert ? o->divert(x, &x->match.arg, o->divert_arg) : NULL;
	if (x->match.route)
		return path[0] == '/' ? 0 : 400;
	if (httpd_is_for_port(x, NULL, NULL, 0))
		return 404;
	return route_find(o->tables, x->method, path, &x->match);
}

/* 0, or the status of the refusal. */
static unsigned judge(struct httpd_exchange *x, const char *path)
{
	unsigned refusal;

	if (is_ambiguous(x->connection))
		return 400;
	if (!is_our_name(x))
		return 421;
	refusal = find_route(x, path);
	if (!refusal)
		refusal = authorize(x);
	if (!refusal && is_too_large(x))
		refusal = 413;
	return refusal ? refusal : admit(x);
}

static unsigned shown_status(unsigned refusal)
{
	if (refusal == HTTPD_UNDECIDED)
		return 503;
	return refusal == 421 ? 403 : refusal;
}

static void refuse(struct httpd_exchange *x)
{
	static const struct {
		unsigned status;
		const char *code, *sentence, *remedy;
	} table[] = {
		{ 400, "invalid", "the request is not well-formed, or can be read in two ways",
		  "send Host, key and length of the body once, and valid escapes" },
		{ 401, "denied", "a key is needed",
		  "send Authorization: Bearer KEY, or X-API-Key: KEY" },
		{ 403, "denied", "this key may not do that", "use an administrator's key" },
		{ 404, "not_found", "there is no such path", "see GET /v1/openapi.json" },
		{ 405, "invalid", "this path does not have this method",
		  "the header Allow lists those that it has" },
		{ 413, "limit", "the request is too large", "send it in pieces" },
		{ 421, "denied", "this Host or Origin is not allowed",
		  "name it with --host where the server is started" },
		{ 429, "limit", "too many requests", "send them more slowly" },
		{ 503, "limit", "too many requests at once, or the server is stopping",
		  "try again later" },
		{ 507, "limit", "there is no room for the body", "try again later" },
		{ HTTPD_UNDECIDED, "os", "the key could not be looked up",
		  "try again later; the server's database may be locked, or its disk full" },
		{ 0, "os", "the request failed", "see the log of the server" },
	};
	const struct httpd_route *r = x->match.route;
	size_t i = 0;

	if (r && r->refuse && r->refuse(x, x->refusal))
		return;
	while (table[i].status && table[i].status != x->refusal)
		i++;
	if (x->refusal == 401)
		httpd_add_header(x, "WWW-Authenticate", "Bearer realm=\"cordon\"");
	if (x->refusal == 405)
		httpd_add_header(x, "Allow", x->match.allow);
	problem_answer_as(x, shown_status(x->refusal), table[i].code, table[i].sentence,
			  table[i].remedy);
}

/* ---- the body */

static int keep_in_file(struct httpd_exchange *x, const char *bytes, size_t len)
{
	if (x->body_fd < 0)
		x->body_fd = file_scratch();
	return x->body_fd < 0 ? x->body_fd : file_write_all(x->body_fd, bytes, len);
}

static void take_body(struct httpd_exchange *x, const char *bytes, size_t len)
{
	const struct httpd_route *r = x->match.route;

	if (x->refusal)
		return;
	/* A large body may take longer, as long as it comes. */
	if ((x->body_bytes + len) / BODY_STEP > x->body_bytes / BODY_STEP)
		httpdoor_progress(x->server->door, httpd_guest(x->connection));
	x->body_bytes += len;
	if (x->body_bytes > r->body_max)
		x->refusal = 413;
	else if (r->flags & HTTPD_BODY_FILE ? keep_in_file(x, bytes, len) < 0
					    : buf_add(&x->body, bytes, len) < 0)
		x->refusal = 507;
}

/* ---- the handler */

static void leave_running(struct httpd *h)
{
	pthread_mutex_lock(&h->lock);
	h->running--;
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
}

/* In a worker thread. */
static void handle(void *arg)
{
	struct httpd_exchange *x = arg;
	struct httpd *h = x->server;

	x->match.route->fn(x, x->match.arg);
	httpd_put(x);
	leave_running(h);
}

/* False: there is no thread for it, or the server waits for no handler any more. */
static bool start_handler(struct httpd_exchange *x)
{
	struct httpd *h = x->server;

	pthread_mutex_lock(&h->lock);
	bool is_closed = h->is_closed;
	h->running += !is_closed;
	pthread_mutex_unlock(&h->lock);
	if (is_closed)
		return false;
	if (workers_run(h->workers, handle, httpd_ref(x)))
		return true;
	httpd_put(x);
	leave_running(h);
	return false;
}

/* The whole request is there: the connection waits for its answer. */
static enum MHD_Result begin(struct httpd_exchange *x)
{
	if (x->refusal || (x->match.route->flags & HTTPD_QUICK)) {
		x->is_quick = true;
		if (x->refusal)
			refuse(x);
		else
			x->match.route->fn(x, x->match.arg);
		return httpd_exchange_queue(x);
	}
	x->is_suspended = true;
	MHD_suspend_connection(x->connection);
	if (start_handler(x))
		return MHD_YES;
	x->refusal = 503;
	refuse(x);
	return MHD_YES;
}

static bool has_body(struct httpd_exchange *x)
{
	const char *length = httpd_header(x, "Content-Length");

	return httpd_header(x, "Transfer-Encoding") || (length && !str_eq(length, "0"));
}

/* The library would wait for the rest of a body whose sender is gone. */
static void on_lost_body(void *arg)
{
	struct httpd_exchange *x = arg;

	httpdoor_hurry(x->server->door, httpd_guest(x->connection));
}

static struct httpd_exchange *meet(struct httpd *h, struct MHD_Connection *c, const char *method,
				   const char *path)
{
	struct httpd_exchange *x = httpd_exchange_new(h, c, method);

	if (!x)
		return NULL;
	x->path = route_decode(path, strlen(path));
	httpspan_begin(x);
	x->refusal = x->method && x->path ? judge(x, path) : 400;
	if (!x->refusal && (x->match.route->flags & HTTPD_BODY_STREAM) &&
	    !httpd_intake_copy(x, path))
		x->refusal = 503;
	x->is_streamed_in = !x->refusal && x->has_copies && has_body(x);
	if (!x->refusal && has_body(x))
		httpd_watch(x, on_lost_body, x);
	buf_init(&x->body, x->match.route ? x->match.route->body_max : 0);
	return x;
}

/* A body that the handler reads: another piece, or its end, or the answer is there. */
static enum MHD_Result go_on(struct httpd_exchange *x, const char *bytes, size_t *len)
{
	struct httpdoor_guest *g = httpd_guest(x->connection);
	uint64_t before = x->body_bytes;

	if (*len > 0) {
		httpd_intake_feed(x, bytes, len);
		if (x->body_bytes / BODY_STEP > before / BODY_STEP)
			httpdoor_progress(x->server->door, g);
		return MHD_YES;
	}
	httpdoor_received(x->server->door, g);
	return httpd_intake_end(x) ? httpd_exchange_queue(x) : MHD_YES;
}

/* libmicrohttpd calls it once with the headers, once per piece of the body, once at the end, and
 * once more when a suspended connection goes on. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *path,
				  const char *method, const char *version, const char *bytes,
				  size_t *len, void **state)
{
	struct httpd_exchange *x = *state;

	(void)version;
	if (!x) {
		*state = x = meet(arg, c, method, path);
		if (!x)
			return MHD_NO;
		if (x->is_streamed_in && !start_handler(x))
			x->refusal = 503;
		return x->refusal ? begin(x) : MHD_YES;
	}
	if (x->is_streamed_in && !x->refusal)
		return go_on(x, bytes, len);
	if (*len > 0) {
		take_body(x, bytes, *len);
		*len = 0;
		return MHD_YES;
	}
	if (x->has_begun)
		return httpd_exchange_queue(x);
	x->has_begun = true;
	httpd_unwatch(x);
	httpdoor_received(x->server->door, httpd_guest(c));
	return begin(x);
}

static void on_end(void *arg, struct MHD_Connection *c, void **state,
		   enum MHD_RequestTerminationCode code)
{
	struct httpd_exchange *x = *state;

	(void)arg;
	(void)code;
	if (!x)
		return;
	*state = NULL;
	httpdoor_end(x->server->door, httpd_guest(c));
	/* The library reports the end of an upgraded connection while it holds a lock of its own,
	 * which MHD_resume_connection takes, too. Others call that with our locks held, so here
	 * none of them may be taken. Everything else was done when it left HTTP. */
	if (x->is_upgraded)
		httpd_put(x);
	else
		httpd_exchange_leave(x);
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
		h->connections++;
	} else {
		httpdoor_leave(h->door, *context);
		*context = NULL;
		h->connections--;
	}
}

/* ---- start and stop */

/* The library never logs. */
static void be_silent(void *arg, const char *fmt, va_list ap)
{
	(void)arg;
	(void)fmt;
	(void)ap;
}

/* Paths and queries are decoded by route.c, which refuses what is not text. */
static size_t keep_escapes(void *arg, struct MHD_Connection *c, char *text)
{
	(void)arg;
	(void)c;
	return strlen(text);
}

static struct MHD_Daemon *start_daemon(struct httpd *h, int fd, unsigned connections)
{
	const struct httpd_options *o = &h->options;
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)o->tls_cert },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)o->tls_key },
		{ MHD_OPTION_END, 0, NULL },
	};

	if (!o->tls_cert)
		tls[0].option = MHD_OPTION_END;
	return MHD_start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE |
			MHD_USE_ERROR_LOG | (o->tls_cert ? MHD_USE_TLS : 0),
		0, NULL, NULL, on_request, h, MHD_OPTION_EXTERNAL_LOGGER, be_silent, NULL,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_CONNECTION_LIMIT,
		connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_SECONDS,
		MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_ARRAY, tls,
		MHD_OPTION_END);
}

static int listen_at(struct httpd *h, int *ret_fd, struct cordon_error **reterr)
{
	const struct httpd_options *o = &h->options;

	if (o->listen_fd <= 0)
		return httphost_listen(&h->hosts, o->address, o->is_public, o->hosts, ret_fd,
				       h->address, sizeof(h->address), reterr);
	*ret_fd = o->listen_fd;
	return httphost_adopt(&h->hosts, o->listen_fd, o->is_public || o->is_unix, o->hosts,
			      h->address, sizeof(h->address), reterr);
}

static struct httpd *httpd_free(struct httpd *h)
{
	workers_free(h->workers);
	hangup_free(h->hangup);
	tls_pump_free(h->pump);
	httpdoor_free(h->door);
	httphost_done(&h->hosts);
	pthread_mutex_destroy(&h->lock);
	pthread_cond_destroy(&h->changed);
	free(h);
	return NULL;
}

int httpd_start(const struct httpd_options *o, struct httpd **ret, struct cordon_error **reterr)
{
	struct httpd *h = mem_alloc(sizeof(*h));
	unsigned served = o->requests ? o->requests : (unsigned)REQUESTS;
	const struct httpdoor_options door = { .served = served,
					       .connected = o->connections ? o->connections
									   : served + STRANGERS,
					       .header_ms = o->header_ms ? o->header_ms : HEADER_MS,
					       .body_ms = BODY_MS };
	int fd = -1;

	if (!h)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	h->options = *o;
	h->is_unix = o->is_unix;
	pthread_mutex_init(&h->lock, NULL);
	condvar_init(&h->changed);
	int r = httpdoor_new(&door, &h->door, reterr);
	if (r == 0)
		r = workers_new(served, &h->workers, reterr);
	if (r == 0)
		r = hangup_new(&h->hangup, reterr);
	if (r == 0 && o->tls_cert)
		(void)tls_pump_new(&h->pump, NULL);
	if (r == 0)
		r = listen_at(h, &fd, reterr);
	if (r == 0 && !(h->daemon = start_daemon(h, fd, door.connected + LEAVING))) {
		close(fd);
		r = err_set(reterr, CORDON_OS, "the HTTP server could not be started: check %s",
			    o->tls_cert ? "that the certificate and the key are PEM, and fit"
					: "the limits of open files and processes (ulimit -n -u)");
	}
	if (r < 0) {
		(void)httpd_free(h);
		return r;
	}
	*ret = h;
	return 0;
}

void httpd_drain(struct httpd *h)
{
	h->is_draining = true;
}

void httpd_hurry(struct httpd *h)
{
	h->is_hurried = true;
}

bool httpd_is_draining(const struct httpd *h)
{
	return h->is_draining;
}

/* The library listens until its thread has ended, then closes the socket: nobody is left waiting in
 * the kernel's queue. MHD_quiesce_daemon is of no use: it races with the thread, which aborts if it
 * finds the socket gone from its set, and the socket must not be closed earlier all the same. */
struct httpd *httpd_stop(struct httpd *h)
{
	if (!h)
		return NULL;
	httpd_drain(h);
	httpdoor_close(h->door, false);
	deadline_ns until = deadline_after_ms(END_MS);
	pthread_mutex_lock(&h->lock);
	while (h->running > 0 && condvar_wait(&h->changed, &h->lock, until))
		;
	h->is_closed = true;
	pthread_mutex_unlock(&h->lock);
	/* Who does not read an answer loses it. */
	httpdoor_close(h->door, true);
	pthread_mutex_lock(&h->lock);
	while (h->running > 0)
		pthread_cond_wait(&h->changed, &h->lock);
	pthread_mutex_unlock(&h->lock);
	MHD_stop_daemon(h->daemon);
	return httpd_free(h);
}
