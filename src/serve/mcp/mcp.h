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
#include "serve/trace/span.h"

enum { MCP_MESSAGE_MAX = 8 << 20, MCP_CALLS_MAX = 64 };

#define MCP_META "io.modelcontextprotocol/"

struct mcptool;

struct mcp_options {
	const struct cordon_policy *policy; /* for every sandbox; NULL: standard */
	const struct mcptool *tools;        /* ends with a zeroed entry; NULL: those of mcptool.h */
	struct client_session_quota *quota; /* shared with other clients; NULL: none */
	/* No default sandbox: a call without a sandbox_id gets a new sandbox, and its result has
	 * the id. For a transport that cannot tell its clients apart. */
	bool is_stateless;
	/* For programs: tools/list shows one tool for each purpose, and results are not shortened.
	 * Otherwise it shows a few for models. */
	bool lists_all;
	struct tracer *tracer; /* gets the spans of requests; must outlive it; NULL: nobody */
};

/* One client. */
struct mcp {
	struct mcp_options options;
	struct client_sessions sessions;
	pthread_mutex_t opening; /* held while a default sandbox is opened */
	unsigned opened;         /* which default sandboxes were opened once; guarded by opening */
	pthread_mutex_t lock;    /* guards the fields below */
	struct mcpcall *calls;   /* running calls */
	struct mcpcall_notice *notices;
	unsigned call_count;
	uint64_t numbers; /* of calls started so far */
	int log_level;    /* version with the handshake: an index into the levels of mcpcall.h */
};

/* Where the notifications of one request go. Any thread may call it. */
struct mcp_sink {
	bool (*send)(const json_t *message, void *arg); /* false: the client no longer listens */
	void *arg;
	struct trace_context trace; /* of the HTTP request that carries it; zero: none */
};

void mcp_init(struct mcp *m, const struct mcp_options *o);
void mcp_done(struct mcp *m); /* ends all sandboxes */
/* Answers one message with a new reference; NULL: it needs no answer, or was cancelled. sink NULL:
 * no notifications. Any thread may call it. */
json_t *mcp_handle(struct mcp *m, const json_t *message, const struct mcp_sink *sink);
/* Cancels the request that reports to this sink, which then gets no answer. Waits until its code
 * has ended. */
void mcp_abandon(struct mcp *m, const struct mcp_sink *sink);
/* Supported versions: with the handshake, and stateless. */
bool mcp_is_old_version(const char *version);
bool mcp_is_new_version(const char *version);
/* The protocol version in a request of the stateless version; NULL: none. */
const char *mcp_version_of(const json_t *params);
json_t *mcp_error(const json_t *id, int code, const char *message, json_t *data);
/* The error "this version is not supported", with a list of supported ones. */
json_t *mcp_version_error(const json_t *id, const char *requested);
