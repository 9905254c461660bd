/* cli/http_door.h - the verbs' way to HTTP.
 *
 * libmicrohttpd loads dozens of libraries, which every start of `cordon` would pay for. So there
 * are two programs of the same verbs: `cordon`, whose door starts the other one with the same
 * options (door_exec.c), and cordon-http, whose door serves (door_http.c). */
#pragma once

#include <cordon/policy.h>

#include "cli/option.h"

/* `cordon mcp --http`. Returns the exit status. */
int door_serve_mcp(const struct cli *c, const struct cordon_policy *policy);
