/* cli/verb.h - one verb of the program: its name, its options, its function.
 *
 * To add a verb NAME:
 *   1. write src/cli/NAME.c that defines `const struct verb verb_NAME` (src/cli/version.c is the
 *      smallest example), and add the file to src/cli/meson.build;
 *   2. add X(NAME) to CLI_VERBS below, in alphabetical order.
 * Help, man page, completions and nearest-match errors all come from the table in that file. A verb
 * uses the public API (cordon/cordon.h) and the rooms base and policy, nothing else. It writes its
 * output to stdout, everything else with cli_error/cli_fail, and returns the exit status. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/option.h"

struct verb {
	const char *name;
	const char *summary; /* half a line, no full stop: "run a program in a sandbox" */
	const char *usage;   /* what follows the verb: "[OPTION...] [FILE [ARG...]]" */
	const struct cli_option *options;                 /* ends with a zeroed entry; NULL: none */
	int (*run)(struct cli *c, int argc, char **argv); /* argv: the operands, NULL-terminated */
	/* The fields below are optional. */
	const char *about; /* paragraphs for help and man page, separated by "

" */
	const char *const
		*words; /* the first operand must be one of these ("show", "check"), NULL at end */
	int min_operands;   /* fewer are a usage error */
	int max_operands;   /* more are a usage error; 0: none, -1: any number */
	bool options_first; /* options end at the first operand; the rest is passed to the guest */
	const struct cli_example { /* shown last; ends with a zeroed entry */
		const char *command, *meaning;
	} * examples;
};

#define CLI_VERBS(X)                                                                               \
	X(audit)                                                                                   \
	X(cp)                                                                                      \
	X(doctor)                                                                                  \
	X(files)                                                                                   \
	X(help)                                                                                    \
	X(init)                                                                                    \
	X(kernel)                                                                                  \
	X(mcp)                                                                                     \
	X(pod)                                                                                     \
	X(policy)                                                                                  \
	X(rpc)                                                                                     \
	X(run)                                                                                     \
	X(serve)                                                                                   \
	X(shell)                                                                                   \
	X(top)                                                                                     \
	X(validate)                                                                                \
	X(version)

#define X(name) extern const struct verb verb_##name;
CLI_VERBS(X)
#undef X

/* The table; ends with NULL. */
extern const struct verb *const verb_table[];
const struct verb *verb_find(const char *name); /* NULL: no such verb */
const char *verb_nearest(const char *name);     /* a similar name, or NULL */
/* The page that `cordon help NAME` prints. */
void verb_print_help(const struct cli *c, const struct verb *v);
