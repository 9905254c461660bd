/* cli/version.c - `cordon version`. */
#include <cordon/cordon.h>

#include "cli/verb.h"

static int run(struct cli *c, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (cli_has(c, "json"))
		printf("{\"version\":\"%s\"}\n", cordon_version());
	else
		printf("cordon %s\n", cordon_version());
	return 0;
}

static const struct cli_option options[] = {
	{ "json", 0, NULL, "as JSON", false },
	{ 0 },
};

const struct verb verb_version = {
	.name = "version",
	.summary = "print the version",
	.usage = "[--json]",
	.options = options,
	.run = run,
};
