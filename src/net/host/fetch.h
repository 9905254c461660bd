/* net/host/fetch.h - the host's own HTTP client: one request by a policy's rules, in a gateway
 * process of its own. Redirects are followed by hand, and every hop is a new request: decided by
 * its name before anything is resolved, resolved once, every address checked, the checked one
 * connected, the certificate verified. What the guest may not reach, the host does not fetch for
 * it. */
#pragma once

#include "base/buf.h"
#include "net/host/gateway.h"

enum { FETCH_REDIRECTS = 5, FETCH_BODY_MAX = 1 << 20, FETCH_HEADERS_MAX = 50 };

struct fetch_options {
	/* policy (network rules, limits and secrets), program, ca_file, upstream_proxy, resolve,
	 * uid, gid (0: as for a session), callback, event, ask, arg. */
	struct gateway_options gateway;
	const char *url;            /* http:// or https:// */
	const char *method;         /* NULL: GET */
	const char *const *headers; /* "Name: value", NULL at the end; NULL: none */
	const void *body;           /* of the request, at most FETCH_BODY_MAX bytes; NULL: none */
	size_t body_len;
	unsigned redirects;  /* at most; 0: FETCH_REDIRECTS */
	bool no_redirects;   /* the first answer is the answer */
	bool https_only;     /* refuses http://, also as a hop */
	uint64_t timeout_ms; /* for all hops together; 0: the policy's network.timeout_ms */
};

struct fetch_result {
	unsigned status;    /* of the last hop; a status that means failure is no error here */
	unsigned redirects; /* that were followed */
	char *url;          /* of the last hop */
	json_t *headers;    /* of the last hop: [["name", "value"], …], names in lower case */
	struct buf body;    /* at most network.response_bytes */
};

/* -CORDON_DENIED: a hop is not open (the error says which, why, and what would open it);
 * -CORDON_LIMIT: too many bytes or redirects; -CORDON_TIMEOUT; -CORDON_INVALID: the request itself;
 * -CORDON_PROTOCOL or -CORDON_OS: the server, or the way to it. */
int fetch_run(const struct fetch_options *o, struct fetch_result *ret,
	      struct cordon_error **reterr);
void fetch_result_done(struct fetch_result *r);
#define cleanup_fetch CLEANUP(fetch_result_done)
