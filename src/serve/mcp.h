/* serve/mcp.h - the Model Context Protocol: sandboxes as tools for a model's client.
 *
 * A message goes in, an answer comes out, whatever carries them: lines over stdio here, and bodies
 * of requests for an HTTP server. */
#pragma once

#include <cordon/policy.h>
#include <stdbool.h>

#include "base/json.h"
#include "serve/line.h"
#include "serve/seat.h"

struct mcp_options {
	const struct cordon_policy *policy; /* of every sandbox; NULL: standard */
};

/* One client. */
struct mcp {
	const struct cordon_policy *policy;
	struct lineout *out; /* for progress notifications; NULL: none */
	struct seats seats;
};

void mcp_init(struct mcp *m, const struct mcp_options *o, struct lineout *out);
void mcp_done(struct mcp *m); /* ends all sandboxes */
/* The answer to one message, a new reference; NULL: it wants none. Safe from several threads. */
json_t *mcp_handle(struct mcp *m, const json_t *message);
/* Serves lines until the client is gone. */
int mcp_serve(const struct mcp_options *o, int in_fd, int out_fd, struct cordon_error **reterr);
