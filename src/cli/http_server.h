/* cli/http_server.h - `cordon serve` in cordon-http: the parts of the verb. */
#pragma once

#include <cordon/policy.h>

#include "cli/option.h"

/* The folder of what the server keeps: --state, or that of the user; the caller frees it. NULL: out
 * of memory. */
char *http_server_state(const struct cli *c);
/* `cordon serve key ...`; argv begins after "key". Returns the exit status. */
int http_server_key(const struct cli *c, const struct cordon_policy *policy, int argc, char **argv);
