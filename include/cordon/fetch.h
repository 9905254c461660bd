/* cordon/fetch.h - one HTTP request of the host program itself, by the rules of a policy.
 *
 * Threads: any, at any time. `event` runs in the thread that fetches. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cordon/policy.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct cordon_fetch_options {
	/* network.allow and network.block decide about every hop. The network limits apply, and a
	 * secret's placeholder in a header is replaced. NULL opens nothing. */
	const struct cordon_policy *policy;
	const char *url;            /* http:// or https:// */
	const char *method;         /* NULL: GET */
	const char *const *headers; /* "Name: value", NULL at the end; NULL: none */
	const void *body;           /* of the request, at most 1 MiB; NULL: none */
	size_t body_len;
	bool no_redirects;   /* do not follow redirects; otherwise at most 5 are followed */
	bool https_only;     /* refuse http://, also in a redirect */
	const char *ca_file; /* trusted certificate authorities, PEM; NULL: the system's */
	/* One JSON object for every request or denial (docs/gateway.md); NULL: none. */
	void (*event)(const char *json, void *arg);
	void *arg;
};

struct cordon_fetch_result {
	unsigned status;    /* of the last hop; 404 is an answer, not an error */
	unsigned redirects; /* how many were followed */
	char *url;          /* of the last hop */
	char *headers; /* of the last hop, JSON: [["name", "value"], …], names in lower case */
	char *body;    /* body_len bytes and a NUL */
	size_t body_len;
};

/* Needs cordon-gateway, which parses everything that servers send. -CORDON_DENIED: a hop is not
 * allowed; the error says which, why, and what would allow it. On success free *ret with
 * cordon_fetch_done(). */
int cordon_fetch(const struct cordon_fetch_options *o, struct cordon_fetch_result *ret,
		 struct cordon_error **reterr);
void cordon_fetch_done(struct cordon_fetch_result *r);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
