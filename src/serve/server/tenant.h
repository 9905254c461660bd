/* serve/server/tenant.h - one tenant: a key's owner name (key.h), its policy and quotas, and what
 * it owns. Each tenant is a client of serve/rpc with sessions of its own, so it cannot name
 * another's. */
#pragma once

#include <cordon/policy.h>
#include <pthread.h>

#include "serve/http/httpd.h"
#include "serve/mcp/mcphttp.h"
#include "serve/rpc/rpc.h"
#include "serve/server/database.h"
#include "serve/server/metrics.h"

enum { TENANT_NAME_BYTES = HTTPD_PRINCIPAL_BYTES };

struct tenant_options {
	const char *name;
	bool is_admin;
	const struct cordon_policy *policy; /* what its sessions may do at most; copied */
	unsigned sessions;                  /* at once; 0: 64 */
	unsigned executions;                /* at once; 0: 64 */
	uint64_t memory_bytes;              /* of all sessions together; 0: no limit */
	double rate;                        /* requests a second; 0: no limit */
	const unsigned char *hash;          /* of its key; NULL: none */
	const char *audit;                  /* path of its audit log; NULL: none */
	struct metrics *metrics;            /* what it does counts there; must outlive it */
	struct tracer *tracer;              /* gets its spans; must outlive it; NULL: nobody */
	struct database *db;                /* where its sessions are parked; must outlive it */
};

struct tenant {
	char name[TENANT_NAME_BYTES];
	bool is_admin;
	struct cordon_policy *policy;
	unsigned char hash[32]; /* of its key */
	char *audit;            /* path of its audit log; NULL: none */
	double rate;            /* requests a second; 0: no limit */
	struct metrics *metrics;
	struct tracer *tracer;
	struct database *db;
	struct client_session_quota quota; /* of its sessions, over all protocols */
	struct remotes *remotes; /* where it has connections; NULL: none yet; guarded by lock */
	struct mcphttp *mcp;     /* its MCP clients; NULL: none yet; guarded by lock */
	struct rpc *rpc; /* its sessions: client_session_get(&tenant->rpc->sessions, id, ...) */
	pthread_mutex_t lock;        /* guards the fields below */
	struct activity *activities; /* running first, then recent ones; newest first */
	struct pending *pending;     /* questions that wait for the client */
	unsigned running, kept;
	unsigned requests; /* that it has at once, of any kind */
	struct idempotent *idempotents;
	pthread_cond_t changed; /* a request with an Idempotency-Key has its answer */
	double tokens;          /* requests that it may send at once */
	uint64_t tokens_ns;     /* when they were counted */
	uint64_t park_ms;       /* sessions unused for so long are parked; UINT64_MAX: never */
	bool logs;              /* what goes wrong is in the log; otherwise it is plain text */
	_Atomic bool is_swept;  /* a sweep of it is running */
	_Atomic bool is_ending; /* the server ends: what is parked stays so */
	bool is_closing;
	bool is_over;              /* its key is gone; guarded by the server's lock */
	_Atomic bool is_leaving;   /* a thread ends what it has */
	_Atomic bool is_forgotten; /* and has: nothing of it is in the database */
	struct tenant *next;
};

int tenant_new(const struct tenant_options *o, struct tenant **ret, struct cordon_error **reterr);
/* Ends everything it owns; its requests fail from then on. */
void tenant_close(struct tenant *t);
/* Whether tenant_close was called. */
bool tenant_is_closing(struct tenant *t);
/* Counts a request. False: too many a second. */
bool tenant_may_ask(struct tenant *t);
/* So that one tenant cannot take all places of the server. False: it has too many at once. */
bool tenant_enter(struct tenant *t);
void tenant_leave(struct tenant *t);
/* After the last request. Accepts NULL; always returns NULL. */
struct tenant *tenant_free(struct tenant *t);

/* Its MCP clients, made when they are first asked for. NULL: out of memory, or it is over. */
struct mcphttp *tenant_mcp(struct tenant *t);
/* A session that can be used now, with a reference that client_session_put drops. */
int tenant_session(struct tenant *t, const char *id, struct client_session **ret,
		   struct cordon_error **reterr);
/* Runs a method of serve/rpc for the tenant; a parked session comes back first. params: borrowed.
 * id: NULL, or the name of the request for cancel and in messages. */
int tenant_call(struct tenant *t, const char *method, json_t *params, const char *id,
		struct buf *ret, struct cordon_error **reterr);
/* Saved workspaces belong to their tenant: the `workspace` of params, if any, gets a name of its
 * own. */
int tenant_scope_workspace(struct tenant *t, json_t *params, struct cordon_error **reterr);
