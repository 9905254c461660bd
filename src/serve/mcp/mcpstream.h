/* serve/mcp/mcpstream.h - one request whose answer may take a while: carried out by a thread of its
 * own while the connection's thread sends what it says, as JSON when the answer is all there is to
 * say, as an event stream otherwise. */
#pragma once

#include "serve/http/httpd.h"
#include "serve/mcp/mcpclient.h"

struct mcpstream_options {
	struct mcpclients *clients;
	struct mcpclient *client; /* a reference is taken */
	const json_t *message;
	bool accepts_events;
	bool dies_with_connection; /* a client that hangs up wants no answer any more */
	unsigned (*status)(const json_t *answer); /* of an answer that comes alone */
};

/* Carries it out and answers. */
void mcpstream_serve(struct httpd_exchange *x, const struct mcpstream_options *o);
