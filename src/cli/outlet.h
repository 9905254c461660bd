/* cli/outlet.h - where the code's output goes: on to our own standard output and error. */
#pragma once

#include <cordon/policy.h>

#include "base/buf.h"
#include "base/clock.h"

/* A reader that does not read blocks the code, as a pipe would, but not beyond its time limit:
 * later output is kept and written when the code is gone. */
struct outlet {
	const struct cordon_policy *policy;
	deadline_ns started;
	deadline_ns deadline; /* 0: not asked for yet */
	struct buf rest[2];   /* of standard output and error; the policy bounds both */
	int failed;           /* errno that lost some of standard output; 0: none */
};

void outlet_begin(struct outlet *o, const struct cordon_policy *p);
/* A cordon_output_fn; arg: the outlet. */
void outlet_pass(int stream, const char *bytes, size_t len, void *arg);
/* What is left, and this line after it, however long that takes; NULL: none. */
void outlet_end(struct outlet *o, const char *line);
void outlet_done(struct outlet *o);
#define cleanup_outlet CLEANUP(outlet_done)
