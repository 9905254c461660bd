/* serve/mcp/mcpclient.h - the MCP clients over HTTP: by the id of their session, or, in the
 * stateless version, by their token. */
#pragma once

#include "serve/http/httpd.h"
#include "serve/mcp/mcp.h"

enum { MCPCLIENT_ID_BYTES = 40 };

struct mcpclient {
	char id[MCPCLIENT_ID_BYTES];           /* "": of the stateless generation */
	char principal[HTTPD_PRINCIPAL_BYTES]; /* nobody else may use it */
	struct mcp mcp;
	unsigned refs; /* the table's own is one of them */
	uint64_t used_ns;
	struct mcpclient *next;
};

struct mcpclients {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct mcpclient *first;
	unsigned count, max;
	unsigned alive; /* with those that left the table and are still in use */
	bool is_closing;
	struct mcp_options options;
	struct client_session_quota quota;
};

void mcpclients_init(struct mcpclients *t, const struct mcp_options *o, unsigned max,
		     unsigned sandboxes);
void mcpclients_done(struct mcpclients *t);
/* All of these give a reference that goes with mcpclient_put. NULL: there is none, or no room. */
struct mcpclient *mcpclient_new(struct mcpclients *t, const char *principal);
struct mcpclient *mcpclient_get(struct mcpclients *t, const char *id, const char *principal);
struct mcpclient *mcpclient_stateless(struct mcpclients *t, const char *principal);
struct mcpclient *mcpclient_ref(struct mcpclients *t, struct mcpclient *c);
void mcpclient_put(struct mcpclients *t, struct mcpclient *c);
/* Ends it: nobody finds it any more, what it runs is cancelled. Takes the caller's reference. */
void mcpclient_end(struct mcpclients *t, struct mcpclient *c);
/* Ends those that nobody used since then, and their sandboxes. */
void mcpclients_expire(struct mcpclients *t, uint64_t before_ns);
/* Ends all and what they run. false: somebody still uses one, a reader that does not read. */
bool mcpclients_close(struct mcpclients *t);
