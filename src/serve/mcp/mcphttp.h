/* serve/mcp/mcphttp.h - the Model Context Protocol over HTTP: Streamable HTTP with sessions
 * (2025-11-25 and older), and the stateless generation (2026-07-28) at the same place. */
#pragma once

#include "serve/http/httpd.h"
#include "serve/mcp/mcp.h"

struct mcphttp;

struct mcphttp_options {
	struct mcp_options mcp; /* of every client */
	unsigned clients;       /* sessions of the protocol at once; 0: 64 */
	unsigned sandboxes;     /* of all clients together; 0: 128 */
	uint64_t idle_ms; /* mcphttp_sweep ends what was unused for so long; 0: half an hour */
};

int mcphttp_new(const struct mcphttp_options *o, struct mcphttp **ret,
		struct cordon_error **reterr);
/* For a route of httpd.h, with the room as arg. */
void mcphttp_serve(struct httpd_exchange *x, void *room);
/* Ends unused clients and sandboxes; call it now and then. */
void mcphttp_sweep(struct mcphttp *h);
/* Ends all clients and what they run; later requests are refused. Before httpd_stop. false: an
 * answer is stuck with a client that does not read, and httpd_stop would wait for it. */
bool mcphttp_close(struct mcphttp *h);
/* After httpd_stop. Accepts NULL; always returns NULL. */
struct mcphttp *mcphttp_free(struct mcphttp *h);
