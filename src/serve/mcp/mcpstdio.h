/* serve/mcp/mcpstdio.h - the Model Context Protocol as lines over a pair of descriptors. */
#pragma once

#include "serve/mcp/mcp.h"

/* Serves until the client is gone. -CORDON_TIMEOUT: something did not end in time and was not
 * freed; it ends with the process. */
int mcpstdio_serve(const struct mcp_options *o, int in_fd, int out_fd,
		   struct cordon_error **reterr);
