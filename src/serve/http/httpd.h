/* serve/http/httpd.h - an HTTP/1.1 server: libmicrohttpd behind one header.
 *
 * One thread waits for all connections. A request that has arrived whole goes to a worker thread,
 * so a handler may block, and a connection without a request costs no thread. Before a handler gets
 * a request, its Host and Origin were checked (so that a web page cannot use the browser to reach
 * us), its sender was authenticated, and its body, within the limit, has arrived. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "serve/trace/trace_context.h"

struct httpd;
struct tracer;
struct httpd_exchange; /* one request and its answer */

enum { HTTPD_PRINCIPAL_BYTES = 64 };

/* Runs in a worker thread, and must answer exactly once before it returns: httpd_answer*, or
 * httpd_stream_begin to httpd_stream_end. */
typedef void (*httpd_fn)(struct httpd_exchange *x, void *arg);

/* What a request needs. Zero is the narrowest. */
enum httpd_right {
	HTTPD_ADMIN, /* an administrator's key */
	HTTPD_KEY,   /* any key */
	HTTPD_OPEN,  /* nothing */
};

/* Decides by the headers who sends a request; runs in the thread of the connections, so it must not
 * block. Calls httpd_set_principal. 0, or the status of the refusal: 401, 403, 429, 502, 503, or
 * HTTPD_UNDECIDED: it could not be found out, which is answered with 503. A request that is refused
 * takes no place: what has no tenant must be refused here, unless it is quick. */
enum { HTTPD_UNDECIDED = 530 };
typedef unsigned (*httpd_authorize_fn)(struct httpd_exchange *x, enum httpd_right right, void *arg);

enum httpd_flags {
	HTTPD_QUICK = 1 << 0, /* never blocks: runs in the thread of the connections */
	HTTPD_BODY_FILE =
		1 << 1, /* the body goes to a file without a name, httpd_body_fd, not memory */
	HTTPD_AT_END = 1 << 2,      /* also while the server ends: it helps what runs to an end */
	HTTPD_BODY_STREAM = 1 << 3, /* the handler runs while the body arrives, and reads it with
				       httpd_body_read; an answer is sent when all has come */
};

struct httpd_route {
	const char *method; /* "GET" also answers HEAD; NULL: any */
	/* "/v1/sessions/{session}": a parameter is one segment; "{rest*}" at the end is all others,
	 * also none. */
	const char *path;
	enum httpd_right right;
	httpd_fn fn;
	uint64_t body_max; /* larger bodies get 413 */
	unsigned flags;
	httpd_authorize_fn authorize; /* instead of the server's; NULL: the server's */
	/* Answers a refusal in the form that its clients read, in the thread of the connections;
	 * false: it has none for this status. NULL: never. */
	bool (*refuse)(struct httpd_exchange *x, unsigned status);
	const void *detail; /* for fn */
};

/* Routes of one room, with the argument of their functions. */
struct httpd_table {
	const struct httpd_route *routes; /* ends with a zeroed one; must outlive the server */
	void *arg;
};

struct httpd_options {
	const char *address; /* "127.0.0.1:8080", "[::1]:0"; port 0: any */
	int listen_fd;       /* > 0: an open socket instead of an address; the server owns it */
	bool is_unix;        /* listen_fd is a Unix socket: Host is not checked */
	bool is_public;      /* the address may be outside the loopback */
	const char *const
		*hosts; /* names allowed in Host and Origin, in addition to the address itself and,
			   on the loopback, localhost; ends with NULL; NULL: none */
	httpd_authorize_fn authorize; /* NULL: everyone is allowed, with the name "" */
	void *authorize_arg;
	/* Called when a request is about to take a place, after authorize, in the same thread;
	 * false: its sender has too many. Each true is followed by leave, when the request is over.
	 * Not called for DELETE and HTTPD_AT_END. NULL: everyone. */
	bool (*admit)(struct httpd_exchange *x, void *arg);
	void (*leave)(struct httpd_exchange *x, void *arg);
	void *admit_arg;
	/* Takes a request by its Host or another header, before its path is looked at; NULL: the
	 * tables decide. *ret_arg: of the route's function. Runs in the thread of the connections;
	 * NULL: nobody does. */
	const struct httpd_route *(*divert)(struct httpd_exchange *x, void **ret_arg, void *arg);
	void *divert_arg;
	unsigned requests;                /* served at the same time; 0: 64 */
	unsigned connections;             /* open at the same time; 0: requests + 192 */
	uint64_t header_ms;               /* time to authenticate; 0: 10 seconds */
	const struct httpd_table *tables; /* ends with a zeroed one; must outlive the server */
	const char *tls_cert, *tls_key;   /* PEM texts; NULL: no TLS */
	/* Called when a request is over, by any thread; NULL: not. */
	void (*log)(const struct httpd_exchange *x, unsigned status, uint64_t ns, void *arg);
	void *log_arg;
	struct tracer *tracer; /* gets a span of each request; must outlive it; NULL: nobody */
};

int httpd_start(const struct httpd_options *o, struct httpd **ret, struct cordon_error **reterr);
/* From now on, requests get 503, except for those with HTTPD_QUICK or HTTPD_AT_END. */
void httpd_drain(struct httpd *h);
bool httpd_is_draining(const struct httpd *h);
/* From now on no httpd_stream_write waits: what a slow reader has no room for is lost. */
void httpd_hurry(struct httpd *h);
/* Waits for the handlers; until they have ended, requests are still answered (503). Accepts NULL;
 * always returns NULL. */
struct httpd *httpd_stop(struct httpd *h);
/* Where it listens, with the actual port. */
const char *httpd_address(const struct httpd *h);
/* Connections that are open now. */
unsigned httpd_connections(struct httpd *h);

/* ---- the request */

/* For handlers: they may run before httpd_start has returned. */
struct httpd *httpd_server(const struct httpd_exchange *x);
const char *httpd_method(const struct httpd_exchange *x);
const char *httpd_path(const struct httpd_exchange *x); /* decoded, without the query */
const struct httpd_route *httpd_route_of(const struct httpd_exchange *x);
/* The first header of this name, without surrounding blanks; NULL: none. */
const char *httpd_header(struct httpd_exchange *x, const char *name);
/* Calls fn for each header until it returns false. */
void httpd_visit_headers(struct httpd_exchange *x,
			 bool (*fn)(const char *name, const char *value, void *arg), void *arg);
/* A parameter of the route's path, decoded; NULL: none. */
const char *httpd_param(const struct httpd_exchange *x, const char *name);
/* A parameter of the query, decoded; NULL: none. */
const char *httpd_query(struct httpd_exchange *x, const char *name);
const char *httpd_body(const struct httpd_exchange *x, size_t *ret_len);
/* With HTTPD_BODY_FILE: at its start; the exchange owns it. -1: the body is empty. */
int httpd_body_fd(struct httpd_exchange *x, uint64_t *ret_bytes);
/* With HTTPD_BODY_STREAM: waits for more of the body. How many bytes; 0: the end; -1: the client is
 * gone, or the body is too long. */
ssize_t httpd_body_read(struct httpd_exchange *x, void *bytes, size_t max);
bool httpd_body_is_too_long(struct httpd_exchange *x);
/* With HTTPD_BODY_STREAM: path and query as they were sent. */
const char *httpd_target(const struct httpd_exchange *x);
/* Whether Host is PORT-ID.NAME, with one of the server's own names: a port of a sandbox. */
bool httpd_is_for_port(struct httpd_exchange *x, unsigned *ret_port, char *ret_id, size_t size);
bool httpd_has_tls(const struct httpd_exchange *x);
/* Whether a list of words, separated by commas, has this one; list NULL: no. */
bool httpd_has_word(const char *list, const char *word);
void httpd_set_principal(struct httpd_exchange *x, const char *name, void *tenant);
const char *httpd_principal(const struct httpd_exchange *x);
void *httpd_tenant(const struct httpd_exchange *x);
/* The request's span, which is the parent of others; without a tracer what the client sent in
 * traceparent; zero: nothing. */
const struct trace_context *httpd_trace(const struct httpd_exchange *x);

/* Calls fn once, in a thread of the server, if the client closes the connection before
 * httpd_unwatch or the end of the request. fn must not block for long. */
void httpd_watch(struct httpd_exchange *x, void (*fn)(void *arg), void *arg);
/* Afterwards fn does not run and is not running. */
void httpd_unwatch(struct httpd_exchange *x);

/* ---- the answer */

/* Adds a header to the answer. The name must stay valid; the value is copied. */
void httpd_add_header(struct httpd_exchange *x, const char *name, const char *value);
/* The same for any number of headers whose names are not ours; both are copied. */
void httpd_pass_header(struct httpd_exchange *x, const char *name, const char *value);
/* type NULL: no body. */
void httpd_answer(struct httpd_exchange *x, unsigned status, const char *type, const void *body,
		  size_t len);
/* A piece of a file; the descriptor is taken. */
void httpd_answer_fd(struct httpd_exchange *x, unsigned status, const char *type, int fd,
		     uint64_t offset, uint64_t bytes);

/* A body sent in pieces while the handler runs. */
void httpd_stream_begin(struct httpd_exchange *x, unsigned status, const char *type);
/* The same, with a length that is known: what is written must have it, unless the stream is ended
 * as not whole. */
#define HTTPD_UNKNOWN_BYTES UINT64_MAX
void httpd_stream_begin_sized(struct httpd_exchange *x, unsigned status, const char *type,
			      uint64_t bytes);
/* Waits while the client has not read enough of what came before. False: the client is gone. Any
 * thread may call it; each call's bytes stay together. */
bool httpd_stream_write(struct httpd_exchange *x, const void *bytes, size_t len);
/* is_whole false: the connection is cut, so that the client sees that something is missing. */
void httpd_stream_end(struct httpd_exchange *x, bool is_whole);
/* The same without waiting; false: it does not fit at present, or the client is gone. */
bool httpd_stream_offer(struct httpd_exchange *x, const void *bytes, size_t len);
bool httpd_is_gone(struct httpd_exchange *x);
/* No httpd_stream_write of this stream waits any more. The client sees that something is missing.
 */
void httpd_stream_hurry(struct httpd_exchange *x);

/* ---- another protocol on the same connection */

struct httpd_link; /* a connection that has left HTTP */
/* fd: not blocking, and the link's; with TLS the plain text. early: what came after the request (a
 * client with TLS must wait for the answer). May run in the thread of the connections, so it must
 * not block. link NULL: the client left before. */
typedef void (*httpd_upgraded_fn)(struct httpd_link *link, int fd, const void *early, size_t len,
				  void *arg);
/* Whether the request asks for this protocol (Connection: Upgrade, Upgrade: PROTOCOL). */
bool httpd_asks_upgrade(struct httpd_exchange *x, const char *protocol);
/* Answers with 101. fn is called exactly once. The link takes no place of a request. */
void httpd_answer_upgrade(struct httpd_exchange *x, const char *protocol, httpd_upgraded_fn fn,
			  void *arg);
/* Closes the connection. Any thread. All must be closed before httpd_stop. */
void httpd_link_close(struct httpd_link *link);
/* For a stream that outlives its handler: it must be ended with httpd_stream_end, then put. */
struct httpd_exchange *httpd_ref(struct httpd_exchange *x);
void httpd_put(struct httpd_exchange *x);
