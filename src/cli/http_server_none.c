/* cli/http_server_none.c - in a cordon-http without SQLite: `cordon serve` says what is missing. */
#include <cordon/cordon.h>

#include "cli/http_door.h"

int http_door_serve(const struct cli *c, const struct cordon_policy *policy, int argc, char **argv)
{
	(void)policy;
	(void)argc;
	(void)argv;
	cli_error(c, "cordon serve needs a build with SQLite (package libsqlite3-dev)");
	return cordon_code_exit_status(CORDON_UNSUPPORTED);
}
