/* cli/http_door.h - how verbs serve HTTP.
 *
 * libmicrohttpd loads dozens of libraries, which would slow every start of `cordon`. So there are
 * two programs with the same verbs: `cordon` starts the other one with the same options
 * (http_door_exec.c), and cordon-http serves (http_door_serve.c). */
#pragma once

#include "cli/option.h"
#include "serve/mcp/mcp.h"

/* `cordon mcp --http`. Returns the exit status. */
int http_door_serve_mcp(const struct cli *c, const struct mcp_options *options);
/* `cordon serve`, with its operands. Returns the exit status. */
int http_door_serve(const struct cli *c, const struct cordon_policy *policy, int argc, char **argv);
