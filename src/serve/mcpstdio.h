/* serve/mcpstdio.h - the Model Context Protocol as lines over a pair of descriptors. */
#pragma once

#include "serve/mcp.h"

/* Serves until the client is gone. */
int mcpstdio_serve(const struct mcp_options *o, int in_fd, int out_fd,
		   struct cordon_error **reterr);
