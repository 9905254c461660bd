/* serve/mcp/mcpstdio.h - the Model Context Protocol as lines over a pair of descriptors. */
#pragma once

#include "serve/mcp/mcp.h"

/* Serves until the client is gone. -CORDON_TIMEOUT: something could not be ended in time, only the
 * end of the process will, and nothing was freed. */
int mcpstdio_serve(const struct mcp_options *o, int in_fd, int out_fd,
		   struct cordon_error **reterr);
