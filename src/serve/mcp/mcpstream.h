/* serve/mcp/mcpstream.h - a request whose answer may take a while. A thread of its own runs it
 * while the worker of the connection sends: plain JSON if there is only the answer, otherwise an
 * event stream. */
#pragma once

#include "serve/http/httpd.h"
#include "serve/mcp/mcpclient.h"

struct mcpstream_options {
	struct mcpclients *clients;
	struct mcpclient *client; /* a reference is taken */
	json_t *message; /* taken over, in every case: a thread of its own reads and frees it */
	bool accepts_events;
	bool dies_with_connection;                /* a client that hangs up cancels the call */
	unsigned (*status)(const json_t *answer); /* HTTP status for a plain JSON answer */
};

/* Runs the request and answers. */
void mcpstream_serve(struct httpd_exchange *x, const struct mcpstream_options *o);
