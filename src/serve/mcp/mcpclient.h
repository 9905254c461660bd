/* serve/mcp/mcpclient.h - the MCP clients over HTTP: by session id or, in the stateless version, by
 * token. */
#pragma once

#include "serve/http/httpd.h"
#include "serve/mcp/mcp.h"

enum { MCPCLIENT_ID_BYTES = 40 };

struct mcpclient {
	char id[MCPCLIENT_ID_BYTES];           /* "": a stateless client */
	char principal[HTTPD_PRINCIPAL_BYTES]; /* only this one may use it */
	struct mcp mcp;
	unsigned refs; /* including the table's own */
	uint64_t used_ns;
	struct mcpclient *next;
};

struct mcpclients {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct mcpclient *first;
	unsigned count, max;
	unsigned alive; /* including those that left the table and are still in use */
	bool is_closing;
	char *loss; /* the first of all; NULL: none */
	void (*lost)(const char *text, void *arg);
	void *lost_arg;
	struct mcp_options options;
	struct client_session_quota quota;
};

void mcpclients_init(struct mcpclients *t, const struct mcp_options *o, unsigned max,
		     unsigned sandboxes);
void mcpclients_done(struct mcpclients *t);
/* Calls fn, in the thread that ends a client or a sandbox without a call of the client's own, if
 * lines of the audit log or files of a workspace were lost. Before the first client. */
void mcpclients_on_loss(struct mcpclients *t, void (*fn)(const char *text, void *arg), void *arg);
/* Each returns a reference that mcpclient_put drops. NULL: not found, or no room. */
struct mcpclient *mcpclient_new(struct mcpclients *t, const char *principal);
struct mcpclient *mcpclient_get(struct mcpclients *t, const char *id, const char *principal);
struct mcpclient *mcpclient_stateless(struct mcpclients *t, const char *principal);
struct mcpclient *mcpclient_ref(struct mcpclients *t, struct mcpclient *c);
void mcpclient_put(struct mcpclients *t, struct mcpclient *c);
/* Removes the client and cancels what it runs. Takes the caller's reference. */
void mcpclient_end(struct mcpclients *t, struct mcpclient *c);
/* Ends clients that were not used since then, and their sandboxes. */
void mcpclients_expire(struct mcpclients *t, uint64_t before_ns);
/* Ends all clients and what they run. False: one is still in use, because its peer does not read
 * the answer. */
bool mcpclients_close(struct mcpclients *t);
