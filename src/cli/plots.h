/* cli/plots.h - plots of a result: inside the terminal if it says that it can show them, else as
 * files whose names are printed. */
#pragma once

#include <cordon/cordon.h>
#include <stdbool.h>

#include "base/json.h"
#include "cli/option.h"

struct plots {
	const struct cli *c;
	bool are_saved;       /* as files already: only to be shown */
	bool names_on_stderr; /* standard output is the code's */
	/* The rest is internal. */
	char *folder; /* for those that are saved without --out-dir; NULL: none yet */
	size_t count;
};

/* outputs: of a result. has_text: its value was printed, so tables need not be saved. */
void plots_show(struct plots *p, const json_t *outputs, bool has_text);
/* The same for a whole result. */
void plots_show_result(struct plots *p, struct cordon_result *r);
void plots_done(struct plots *p);
#define cleanup_plots CLEANUP(plots_done)
