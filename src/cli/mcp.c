/* cli/mcp.c - `cordon mcp`: sandboxes as tools for a model's client. */
#include <cordon/cordon.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/choice.h"
#include "cli/verb.h"
#include "serve/mcp.h"

/* default < file < environment < options: the file of the environment comes first, then the single
 * variables, then what was given on the command line. */
static int environment(const struct cli *c, struct cordon_policy *p, struct cordon_error **reterr)
{
	static const struct {
		const char *variable, *key, *option;
	} table[] = { { "CORDON_TIMEOUT_MS", "timeout_ms=", "timeout" },
		      { "CORDON_MEMORY_BYTES", "memory_bytes=", "memory" },
		      { "CORDON_FS_BYTES", "fs_bytes=", NULL },
		      { "CORDON_NETWORK_ALLOW", "network.allow=", "allow" } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(table) / sizeof(*table); i++) {
		const char *value = getenv(table[i].variable);
		if (!value || (table[i].option && cli_has(c, table[i].option)))
			continue;
		cleanup_free char *set = str_printf("%s%s", table[i].key, value);
		r = set ? cordon_policy_set(p, set, reterr)
			: err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	return r;
}

static int run(struct cli *c, int argc, char **argv)
{
	cleanup_choice struct cordon_policy *policy = NULL;
	cleanup_error struct cordon_error *e = NULL;

	(void)argc;
	(void)argv;
	if (choice_policy(c, getenv("CORDON_CONFIG"), &policy, &e) < 0 ||
	    environment(c, policy, &e) < 0 || cordon_policy_check(policy, &e) < 0)
		return choice_fail(c, e);
	(void)signal(SIGPIPE, SIG_IGN);
	/* Nothing but messages may reach the client: whatever else is printed goes to stderr. */
	int out = dup(STDOUT_FILENO);
	if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
		cli_error(c, "cannot set up the standard streams");
		return cordon_code_exit_status(CORDON_OS);
	}
	struct mcp_options o = { .policy = policy };
	return mcp_serve(&o, STDIN_FILENO, out, &e) < 0 ? cli_fail(c, e) : 0;
}

static const struct cli_option options[] = {
	CHOICE_OPTIONS,
	{ 0 },
};

static const struct cli_example examples[] = {
	{ "cordon mcp --level strict", "what a model's client is told to start" },
	{ "cordon mcp --mount /srv/data:/data:ro", "with a folder to read" },
	{ 0 },
};

const struct verb verb_mcp = {
	.name = "mcp",
	.summary = "serve a model's client: the Model Context Protocol over stdio",
	.usage = "[OPTION...]",
	.options = options,
	.run = run,
	.about =
		"Offers run_code, run_command, files, sandboxes and snapshots as tools. The policy "
		"comes from the options, over the variables CORDON_TIMEOUT_MS, "
		"CORDON_MEMORY_BYTES, CORDON_FS_BYTES and CORDON_NETWORK_ALLOW, over the file "
		"that CORDON_CONFIG names, over the level.",
	.examples = examples,
};
