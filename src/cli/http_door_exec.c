/* cli/http_door_exec.c - in `cordon`: executes cordon-http with the same options. */
#include <cordon/cordon.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/companion.h"
#include "cli/http_door.h"
#include "cli/verb.h"

/* Passes the options and operands on as given. */
static int execute(const struct cli *c, int argc, char **argv)
{
	cleanup_strlist struct strlist args = { 0 };
	char program[PATH_MAX + 64];
	int r = strlist_add(&args, "cordon");

	if (!companion_find("cordon-http", program, sizeof(program))) {
		cli_error(c, "cordon-http is missing: HTTP needs a build with libmicrohttpd "
			     "(package libmicrohttpd-dev)");
		return cordon_code_exit_status(CORDON_UNSUPPORTED);
	}
	if (r == 0)
		r = strlist_add(&args, c->verb->name);
	for (size_t i = 0; r == 0 && i < c->given_count; i++) {
		const struct cli_given *g = &c->given[i];
		cleanup_free char *word = g->option->value
						  ? str_printf("--%s=%s", g->option->name, g->value)
						  : str_printf("--%s", g->option->name);
		r = word ? strlist_add(&args, word) : -CORDON_NOMEM;
	}
	for (int i = 0; r == 0 && i < argc; i++)
		r = strlist_add(&args, argv[i]);
	if (r == 0)
		(void)execv(program, args.items);
	cli_error(c, "cannot start %s", program);
	return cordon_code_exit_status(CORDON_OS);
}

/* The policy was only read to report its errors early. */
int http_door_serve_mcp(const struct cli *c, const struct mcp_options *options)
{
	(void)options;
	return execute(c, 0, NULL);
}

int http_door_serve(const struct cli *c, const struct cordon_policy *policy, int argc, char **argv)
{
	(void)policy;
	return execute(c, argc, argv);
}
