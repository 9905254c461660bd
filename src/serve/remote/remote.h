/* serve/remote/remote.h - the protocol of `cordon rpc` on a connection to the server (GET /v1/rpc,
 * Upgrade: cordon-rpc/1). So the clients for Python, R and Node work with a server as they do with
 * the program. A connection is a client of serve/rpc of its own; it counts towards the quotas of
 * its key. What it opened ends with it. One thread waits for all idle connections. */
#pragma once

#include "serve/http/httpd.h"

#define REMOTE_PROTOCOL "cordon-rpc/1"

struct tenant;
struct remotes; /* the connections of a server */

/* Starts a thread. */
int remotes_new(struct remotes **ret, struct cordon_error **reterr);
/* From now on nothing new is executed or opened. */
void remotes_drain(struct remotes *all);
/* Ends the connections of a tenant, which must be closing, so that there are no new ones. Does not
 * wait for them. */
void remotes_end(struct remotes *all, const struct tenant *t);
/* Ends all connections and waits for them. Later ones are refused. */
void remotes_close(struct remotes *all);
/* Closes first. Accepts NULL; always returns NULL. */
struct remotes *remotes_free(struct remotes *all);

/* For a table of httpd.h, with the struct remotes as arg. */
extern const struct httpd_route remote_routes[];
