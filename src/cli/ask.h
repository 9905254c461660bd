/* cli/ask.h - `cordon run --ask`: after a run, asks whether what was denied is to be allowed. All
 * words of a denial may be the code's, and so may be what the terminal shows above a question. */
#pragma once

#include <cordon/cordon.h>

#include "base/buf.h"
#include "cli/asked.h"
#include "cli/option.h"

struct ask {
	const struct cli *c;
	bool has_file;      /* else there is nothing to keep an answer for */
	struct asked asked; /* for that file */
	json_t *refused;    /* in this run of the program */
	bool has_ended;     /* the user closed the input */
};

/* 0, or the exit status after a message: no terminal, or an option that --ask cannot go with. */
int ask_refuse(const struct cli *c, bool is_notebook);
/* Reads what was answered for this file (NULL: there is none), puts what is allowed into the
 * policy, and says so. Fills *ret (uninitialised memory). */
int ask_init(struct ask *ret, const struct cli *c, const char *file, const struct buf *code,
	     struct cordon_policy *policy, struct cordon_error **reterr);
void ask_done(struct ask *a);
#define cleanup_ask CLEANUP(ask_done)

/* Asks about each denial that a change of the policy would lift. True: the policy has changed. */
bool ask_about(struct ask *a, struct cordon_result *r, struct cordon_policy *policy);
