/* serve/server/server.h - `cordon serve`: one HTTP server for API v1, MCP and people. docs/serve.md
 * says which thread runs what, and how to add a route. */
#pragma once

#include <cordon/policy.h>

#include "serve/http/httpd.h"
#include "serve/http/workers.h"
#include "serve/ports/port_proxy.h"
#include "serve/server/database.h"
#include "serve/server/key.h"
#include "serve/server/tenant.h"

struct server_options {
	const char *address;     /* NULL: 127.0.0.1:8123 */
	const char *socket_path; /* a Unix socket instead; NULL: none */
	int listen_fd;           /* > 0: an open socket instead, of a supervisor */
	const char *const *hosts;
	const char *tls_cert, *tls_key; /* PEM texts; NULL: no TLS */
	bool no_keys;                   /* everybody is an administrator */
	/* Beyond the loopback TLS and keys are needed, unless these say otherwise. */
	bool allows_plaintext, allows_no_keys;
	const char *admin_key; /* NULL: none from outside */
	uint64_t park_ms;      /* sessions unused for so long are parked; UINT64_MAX: never */
	uint64_t keep_s;       /* and parked ones are kept for so long, in seconds */
	bool logs;             /* a JSON line on stderr for each request */
	const char *state;     /* folder of what the server keeps */
	const struct cordon_policy *policy; /* of sessions that name no level; NULL: standard */
	const char *templates;              /* folder of policy files for the E2B API; NULL: none */
	const struct tracer_options *tracer; /* where traces go; NULL: nowhere */
};

struct server {
	struct httpd *http;
	struct remotes *remotes; /* connections that speak the protocol of `cordon rpc` */
	struct workers *later;   /* for what must not block the thread that asks for it */
	struct database *db;
	int lock_fd;          /* no other server uses the folder */
	pthread_mutex_t lock; /* guards keys and tenants; a tenant stays until the end */
	pthread_cond_t changed;
	pthread_t sweeper;
	bool has_sweeper, is_ending;
	struct keys keys;
	bool has_keys; /* they are those of the database, as far as we know */
	struct tenant *tenants;
	unsigned char admin_hash[32]; /* of the key from outside */
	bool has_admin_key;
	bool no_keys;
	bool logs; /* a line for each request */
	uint64_t park_ms, keep_s;
	struct cordon_policy *policy;
	struct metrics metrics;
	struct tracer *tracer; /* NULL: there are no traces */
	struct e2b *e2b;
	struct port_proxy ports; /* to servers in sandboxes */
};

int server_start(const struct server_options *o, struct server **ret, struct cordon_error **reterr);
/* No new work from now on. */
void server_drain(struct server *s);
/* Whether an execution of any tenant runs. */
bool server_is_busy(struct server *s);
/* Ends everything. Accepts NULL; always returns NULL. */
struct server *server_stop(struct server *s);
const char *server_address(const struct server *s);

/* Reads the keys again if they have changed, and ends what belongs to keys that are gone. On
 * failure nobody knows which keys there are. */
int server_check_keys(struct server *s, struct cordon_error **reterr);
