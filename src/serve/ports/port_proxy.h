/* serve/ports/port_proxy.h - passes a request on to a server in a sandbox, and its answer back
 * (docs/serve.md, Ports).
 *
 * The server in the sandbox is hostile. It never gets the keys, tokens and cookies of our clients,
 * and what it answers is checked, bounded and framed anew. Under the server's own name its pages
 * could use the console's key, so there they are not for browsers; under a name of the port's own
 * they are. */
#pragma once

#include "serve/http/httpd.h"
#include "serve/ports/port_tunnels.h"

struct port_proxy {
	struct port_tunnels *tunnels;
	/* Whether a text is a key of the server; any thread. */
	bool (*is_key)(const char *text, void *arg);
	void *arg;
};

struct port_proxy_target {
	unsigned port;
	const char *address; /* Unix socket of the exposed port */
	const char *path;    /* path and query for the server */
	/* The path of the port, if the request came to the server's own name: "/v1/…/ports/8000".
	 * NULL: it came to a name of the port's own. */
	const char *prefix;
	const void *owner; /* of the sandbox, for limits */
};

/* For a route with HTTPD_BODY_STREAM. Refuses what is not passed on to any port: before a sandbox
 * is looked for. False: the answer is given. */
bool port_proxy_check(struct httpd_exchange *x, bool has_own_name);
/* Passes it on and answers. */
void port_proxy_serve(struct httpd_exchange *x, const struct port_proxy *proxy,
		      const struct port_proxy_target *to);
