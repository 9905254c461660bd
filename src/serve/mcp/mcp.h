/* serve/mcp/mcp.h - the Model Context Protocol: sandboxes as tools for a model's client.
 *
 * A message goes in, an answer comes out, whatever carries them: lines over stdio (mcpstdio.h) or
 * bodies of HTTP requests (mcphttp.h). */
#pragma once

#include <cordon/policy.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/json.h"
#include "serve/rpc/client_session.h"

enum { MCP_MESSAGE_MAX = 8 << 20, MCP_CALLS_MAX = 64 };

#define MCP_META "io.modelcontextprotocol/"

struct mcptool;

struct mcp_options {
	const struct cordon_policy *policy; /* of every sandbox; NULL: standard */
	const struct mcptool *tools;        /* ends with a zeroed one; NULL: those of mcptool.h */
	struct client_session_quota *quota; /* shared with other clients; NULL: none */
	/* There is no default sandbox: a call that names none gets a new one, whose id comes with
	 * its result. For a transport that cannot tell its clients apart. */
	bool is_stateless;
};

/* One client. */
struct mcp {
	struct mcp_options options;
	struct client_sessions sessions;
	pthread_mutex_t opening; /* of a default sandbox */
	pthread_mutex_t lock;    /* of the fields below */
	struct mcpcall *calls;   /* on their way */
	struct mcpcall_notice *notices;
	unsigned call_count;
	uint64_t numbers; /* of calls ever begun */
	int log_level;    /* of the handshake's generation: an index into the levels of mcpcall.h */
};

/* Where the notifications of one request go; safe from several threads. */
struct mcp_sink {
	bool (*send)(const json_t *message, void *arg); /* false: nobody listens any more */
	void *arg;
};

void mcp_init(struct mcp *m, const struct mcp_options *o);
void mcp_done(struct mcp *m); /* ends all sandboxes */
/* The answer to one message, a new reference; NULL: it wants none, or was cancelled. sink: NULL for
 * no notifications. Safe from several threads. */
json_t *mcp_handle(struct mcp *m, const json_t *message, const struct mcp_sink *sink);
/* Ends a request on its way; it will have no answer. Waits until its code has ended. */
void mcp_cancel(struct mcp *m, const json_t *id);
/* The same for the request that tells this sink. */
void mcp_abandon(struct mcp *m, const struct mcp_sink *sink);
/* Those spoken: with the handshake, and without. */
bool mcp_is_old_version(const char *version);
bool mcp_is_new_version(const char *version);
/* The protocol's version that a request of the newer generation says; NULL: none. */
const char *mcp_version_of(const json_t *params);
json_t *mcp_error(const json_t *id, int code, const char *message, json_t *data);
/* "this version is not spoken here", with those that are. */
json_t *mcp_version_error(const json_t *id, const char *requested);
