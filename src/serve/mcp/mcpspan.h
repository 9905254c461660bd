/* serve/mcp/mcpspan.h - the span of a request of MCP, as OpenTelemetry's conventions for MCP name
 * it: "tools/call run_code". */
#pragma once

#include "serve/mcp/mcp.h"

/* Its parent is the span that _meta.traceparent names; the HTTP request is then linked. Otherwise
 * the HTTP request is the parent, if there is one. */
void mcpspan_begin(struct span *s, const struct mcp *m, const json_t *message,
		   const struct mcp_sink *sink);
/* result, error: the answer; both NULL: it was cancelled. */
void mcpspan_end(struct span *s, const json_t *result, const json_t *error);
