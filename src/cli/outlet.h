/* cli/outlet.h - passes the code's output to our own standard output and error. */
#pragma once

#include <cordon/policy.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/progress.h"

/* A reader that does not read blocks the code, as a pipe would, but only until the code's deadline.
 * Later output is kept and written after the code has ended. */
struct outlet {
	const struct cordon_policy *policy;
	deadline_ns started;
	deadline_ns deadline;    /* 0: not computed yet */
	struct buf rest[2];      /* for standard output and error; the policy limits both */
	struct progress waiting; /* ends when something is to be shown on a terminal */
	bool is_shown[2];        /* whether standard output and error are terminals */
	int failed;              /* errno of lost standard output; 0: none */
};

void outlet_begin(struct outlet *o, const struct cordon_policy *p);
/* A cordon_output_fn; arg: the outlet. */
void outlet_pass(int stream, const char *bytes, size_t len, void *arg);
/* Writes what is left, then this line (NULL: none), without a time limit. */
void outlet_end(struct outlet *o, const char *line);
void outlet_done(struct outlet *o);
#define cleanup_outlet CLEANUP(outlet_done)
