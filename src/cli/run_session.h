/* cli/run_session.h - the session of one `cordon run`: opened, filled, worked in, emptied, ended.
 */
#pragma once

#include <cordon/cordon.h>

#include "cli/interactive.h"
#include "cli/notebook.h"
#include "cli/option.h"
#include "cli/progress.h"

/* What is done in a session: code that gives a result, a notebook's cells, or a program on a
 * terminal. */
struct run_work {
	const struct cordon_execute_options *options;
	struct cordon_result *result;
	struct progress *waiting; /* shown until the code prints something; NULL: not at all */
	struct notebook *notebook;
	int status; /* of the notebook's cells */
	const struct interactive *interactive;
	int signal; /* that ended it */
};

/* Whether requests need a decision of the person who runs this. */
bool run_session_asks(const struct cordon_policy *p);
/* Options that need a session; without them a run is a single call. */
bool run_session_is_needed(const struct cli *c, const struct cordon_policy *policy);
int run_session_work(const struct cli *c, const struct cordon_session_options *base,
		     struct run_work *w, struct cordon_error **reterr);
/* The tools of --tools; *ret stays NULL without it. */
int run_session_tools(const struct cli *c, struct cordon_tools **ret, struct cordon_error **reterr);
/* Where a notebook is written: --output, or -o without a colon. NULL: nowhere. */
const char *run_session_target(const struct cli *c);
