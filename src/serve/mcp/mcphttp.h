/* serve/mcp/mcphttp.h - the Model Context Protocol over HTTP: Streamable HTTP with sessions
 * (2025-11-25 and older) and the stateless version (2026-07-28) at the same URL. */
#pragma once

#include "serve/http/httpd.h"
#include "serve/mcp/mcp.h"

struct mcphttp;

struct mcphttp_options {
	struct mcp_options mcp; /* for every client */
	unsigned clients;       /* protocol sessions at the same time; 0: 64 */
	unsigned sandboxes;     /* total for all clients; 0: 128 */
	/* Lines of the audit log or files of a workspace were lost, at an end that no call waits
	 * for: DELETE, idleness, the end of the server. From any thread. NULL: nobody is told. */
	void (*lost)(const char *text, void *arg);
	void *lost_arg;
	struct client_session_quota *quota; /* sandboxes count there, too; NULL: not */
	uint64_t idle_ms; /* mcphttp_sweep ends what was unused for this long; 0: half an hour */
};

int mcphttp_new(const struct mcphttp_options *o, struct mcphttp **ret,
		struct cordon_error **reterr);
/* For a table of httpd.h, with the struct mcphttp as arg. */
extern const struct httpd_route mcphttp_routes[];
/* The handler of its only route, for a server that has several rooms. */
void mcphttp_serve(struct httpd_exchange *x, void *room);
/* Ends unused clients and sandboxes; call it regularly. */
void mcphttp_sweep(struct mcphttp *h);
/* Ends all clients and what they run; later requests are refused. Call it before httpd_stop. False:
 * a client does not read its answer, and httpd_stop would wait for it. */
bool mcphttp_close(struct mcphttp *h);
/* What was lost first, since the start; NULL: nothing. Free the text. */
char *mcphttp_take_loss(struct mcphttp *h);
/* After httpd_stop. Accepts NULL; always returns NULL. */
struct mcphttp *mcphttp_free(struct mcphttp *h);
