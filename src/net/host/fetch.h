/* net/host/fetch.h - the host's own HTTP client: one request under a policy's rules, in a gateway
 * process of its own. The gateway follows redirects, and each hop is a new request: its name is
 * decided before it is resolved, it is resolved once, every address is checked, a checked address
 * is connected, and the certificate is verified. So the host fetches nothing that the guest may not
 * reach. */
#pragma once

#include "base/buf.h"
#include "net/host/gateway.h"

enum { FETCH_REDIRECTS = 5, FETCH_BODY_MAX = 1 << 20, FETCH_HEADERS_MAX = 50 };

struct fetch_options {
	/* Used: policy (network rules, limits and secrets), program, ca_file, upstream_proxy,
	 * resolve, uid, gid (0: as for a session), callback, event, ask, arg. */
	struct gateway_options gateway;
	const char *url;            /* http:// or https:// */
	const char *method;         /* NULL: GET */
	const char *const *headers; /* "Name: value", NULL at the end; NULL: none */
	const void *body;           /* of the request, at most FETCH_BODY_MAX bytes; NULL: none */
	size_t body_len;
	unsigned redirects;  /* maximum; 0: FETCH_REDIRECTS */
	bool no_redirects;   /* do not follow redirects */
	bool https_only;     /* refuse http://, also in a redirect */
	uint64_t timeout_ms; /* for all hops together; 0: the policy's network.timeout_ms */
	int stop_fd;         /* > 0: when it becomes readable, the request ends with
				-CORDON_CANCELLED */
};

struct fetch_result {
	unsigned status;    /* of the last hop; an error status is not an error here */
	unsigned redirects; /* how many were followed */
	char *url;          /* of the last hop */
	json_t *headers;    /* of the last hop: [["name", "value"], …], names in lower case */
	struct buf body;    /* at most network.response_bytes */
};

/* -CORDON_DENIED: a hop is not allowed (the error says which one, why, and what would allow it).
 * -CORDON_LIMIT: too many bytes or redirects. -CORDON_TIMEOUT. -CORDON_INVALID: a bad request.
 * -CORDON_PROTOCOL or -CORDON_OS: the server or the connection failed. */
int fetch_run(const struct fetch_options *o, struct fetch_result *ret,
	      struct cordon_error **reterr);
void fetch_result_done(struct fetch_result *r);
#define cleanup_fetch CLEANUP(fetch_result_done)
