/* serve/http/httpd_exchange.h - one request and its answer; for the files of this room. */
#pragma once

#include <microhttpd.h>
#include <pthread.h>

#include "base/buf.h"
#include "serve/http/hangup.h"
#include "serve/http/httpd.h"
#include "serve/http/httpdoor.h"
#include "serve/http/httphost.h"
#include "serve/http/route.h"
#include "serve/http/tls_pump.h"
#include "serve/http/workers.h"
#include "serve/trace/span.h"

enum { HTTPD_EXCHANGE_HEADERS = 12, HTTPD_EXCHANGE_STREAM = 256 << 10 };

struct httpd {
	struct MHD_Daemon *daemon;
	struct httphost hosts;
	struct httpdoor *door;
	struct workers *workers;
	struct hangup *hangup;
	struct tls_pump *pump; /* NULL: no TLS, or the library moves the bytes */
	char address[128];
	struct httpd_options options;
	bool is_unix;
	_Atomic bool is_draining, is_hurried;
	_Atomic unsigned connections;
	pthread_mutex_t lock; /* guards the fields below */
	pthread_cond_t changed;
	unsigned running; /* requests whose handler has not returned */
	bool is_closed;   /* none starts any more: the library must not end with one waiting */
};

struct httpd_exchange {
	struct httpd *server;
	struct MHD_Connection *connection;
	char *method, *path; /* copies: a stream may outlive the request */
	struct route_match match;
	struct buf body;
	int body_fd;
	uint64_t body_bytes;
	unsigned refusal; /* HTTP status of the refusal; 0: allowed */
	char principal[HTTPD_PRINCIPAL_BYTES];
	void *tenant;
	struct {
		const char *name;
		char *value;
	} headers[HTTPD_EXCHANGE_HEADERS];
	struct strlist kept;   /* decoded values that were handed out */
	struct strlist passed; /* names and values of further headers of the answer, in turn */
	/* With HTTPD_BODY_STREAM, because the library may still write to its own: names and values
	 * of the request's headers, in turn; and the target. */
	struct strlist copies;
	char *target;
	bool has_copies;
	bool is_streamed_in; /* the handler runs while the body arrives */
	uint64_t begun_ns;
	struct span span;
	struct hangup_entry hangup;
	httpd_upgraded_fn upgraded; /* NULL: the connection stays, or it was called */
	void *upgraded_arg;
	bool has_begun, is_logged;
	bool is_admitted; /* options.admit said yes: options.leave follows */
	bool is_quick;    /* runs in the thread of the connections: nothing is suspended */

	/* It has left HTTP: it is not watched, and only the thread of the connections uses it. */
	bool is_upgraded;
	_Atomic unsigned refs;

	pthread_mutex_t lock;    /* guards the fields below */
	pthread_cond_t drained;  /* the client has read, or is gone */
	void (*left)(void *arg); /* of httpd_watch; NULL: none */
	void *left_arg;
	struct MHD_Response *response; /* the answer, until it is queued */
	unsigned status;
	struct buf front, back; /* of a stream: being read, being written */
	size_t front_at;
	bool is_stream, is_ended, is_whole;
	bool is_suspended; /* until the answer, or more of a stream, is there */
	bool is_gone;      /* the connection is over */
	bool is_hurried;   /* no write waits */
	bool has_gap;      /* a write was dropped */
	struct buf intake; /* of a body that is read while it arrives */
	bool is_body_over, is_too_long;
	bool is_intake_full; /* suspended until the handler has read */
	bool is_answered;
	bool has_left; /* the library has forgotten it: no answer is sent any more */
};

/* In upgrade.c: the client left before the connection changed its protocol. */
void upgrade_give_up(struct httpd_exchange *x);
/* In httpd_exchange.c: the answer is there. r is taken; NULL: the connection is closed. */
void httpd_exchange_answer(struct httpd_exchange *x, unsigned status, const char *type,
			   struct MHD_Response *r);
/* In httpd_exchange.c: lets the connection go on; without an answer it is closed. */
void httpd_exchange_resume(struct httpd_exchange *x);
/* In httpd_exchange.c: the same with the lock held, if it waits. */
void httpd_exchange_wake(struct httpd_exchange *x);
/* In httpd_exchange.c: tells once that the request is over. */
void httpd_exchange_log(struct httpd_exchange *x);
/* In httpspan.c: the span of a request begins with its headers, and ends with it. */
void httpspan_begin(struct httpd_exchange *x);
void httpspan_end(struct httpd_exchange *x, unsigned status);
/* In httpd.c. */
struct httpdoor_guest *httpd_guest(struct MHD_Connection *c);
/* In httpd_exchange.c. NULL: out of memory. */
struct httpd_exchange *httpd_exchange_new(struct httpd *h, struct MHD_Connection *c,
					  const char *method);
/* The connection is over: ends streams. */
void httpd_exchange_leave(struct httpd_exchange *x);
/* In httpd_intake.c, in the thread of the connections. Copies what a handler reads of the request
 * while the body arrives. False: out of memory. */
bool httpd_intake_copy(struct httpd_exchange *x, const char *path);
const char *httpd_intake_header(const struct httpd_exchange *x, const char *name);
/* A piece of the body; *len becomes what was not taken. Then the connection is suspended. */
void httpd_intake_feed(struct httpd_exchange *x, const char *bytes, size_t *len);
/* The whole body was fed. False: there is no answer yet, and the connection is suspended. */
bool httpd_intake_end(struct httpd_exchange *x);
/* Sends the answer if it is there; otherwise the connection is closed. In the thread of the
 * connections. */
enum MHD_Result httpd_exchange_queue(struct httpd_exchange *x);
