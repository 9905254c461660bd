/* serve/http/httpd.h - an HTTP/1.1 server for RPC and MCP: libmicrohttpd behind one header.
 *
 * Each connection has a thread, so a handler may block. Before a handler gets a request, its Host
 * and Origin were checked (so that a web page cannot use the browser to reach us), its sender was
 * authenticated, and its whole body, within the limit, has arrived. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct httpd;
struct httpd_exchange; /* one request and its answer */

enum { HTTPD_PRINCIPAL_BYTES = 64 };

/* Must answer exactly once. */
typedef void (*httpd_fn)(struct httpd_exchange *x, void *arg);
/* authorization: the header, or NULL. Writes the client's name; false: 401. */
typedef bool (*httpd_authorize_fn)(const char *authorization,
				   char ret_principal[HTTPD_PRINCIPAL_BYTES], void *arg);

struct httpd_route {
	const char *path; /* exact */
	httpd_fn fn;
	void *arg;
	size_t body_max; /* larger bodies get 413 */
};

struct httpd_options {
	const char *address; /* "127.0.0.1:8080", "[::1]:0"; port 0: any */
	bool is_public;      /* the address may be outside the loopback */
	const char *const
		*hosts; /* names allowed in Host and Origin, in addition to the address itself and,
			   on the loopback, localhost; ends with NULL; NULL: none */
	httpd_authorize_fn authorize; /* NULL: everyone is allowed, with the name "" */
	void *authorize_arg;
	unsigned connections;             /* requests served at the same time; 0: 64 */
	uint64_t header_ms;               /* time to authenticate; 0: 10 seconds */
	const struct httpd_route *routes; /* ends with a zeroed one; must outlive the server */
};

int httpd_start(const struct httpd_options *o, struct httpd **ret, struct cordon_error **reterr);
/* Waits for the handlers. Accepts NULL; always returns NULL. */
struct httpd *httpd_stop(struct httpd *h);
/* Where it listens, with the actual port. */
const char *httpd_address(const struct httpd *h);

const char *httpd_method(const struct httpd_exchange *x);
/* The first header of this name, without surrounding blanks; NULL: none. */
const char *httpd_header(struct httpd_exchange *x, const char *name);
const char *httpd_body(const struct httpd_exchange *x, size_t *ret_len);
const char *httpd_principal(const struct httpd_exchange *x);
/* The connection. Poll it for POLLRDHUP to notice that the client is gone. */
int httpd_fd(struct httpd_exchange *x);

/* Adds a header to the answer. The name must stay valid; the value is copied. */
void httpd_add_header(struct httpd_exchange *x, const char *name, const char *value);
/* type NULL: no body. */
void httpd_answer(struct httpd_exchange *x, unsigned status, const char *type, const void *body,
		  size_t len);

/* A body sent in pieces. read: blocks and fills; 0: the end; -1: abort. done: always called,
 * once. */
struct httpd_stream {
	ssize_t (*read)(char *bytes, size_t max, void *arg);
	void (*done)(void *arg);
	void *arg;
};
void httpd_answer_stream(struct httpd_exchange *x, unsigned status, const char *type,
			 const struct httpd_stream *s);
