/* session/exit_cause.h - why an execution ended, from the host's own evidence. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/policy.h"
#include "session/engine.h"
#include "session/result.h"

struct evidence {
	bool timed_out, cancelled, over_cpu;
	uint64_t timeout_ms;
	char *protocol;  /* what the guest broke, or NULL */
	char *internal;  /* what the host could not do, or NULL */
	bool has_result; /* the guest sent one; the fields below are its word */
	bool ok, has_exit_code;
	int exit_code;
	char *kind, *name, *message;
	char *told; /* what its runtime was asked and refused, as a JSON array; NULL: nothing */
	struct workspace *workspace; /* borrowed, as the next; NULL: unknown */
	const char *cwd;             /* where the guest says it is; NULL: where it started */
	const char *err_text;        /* stderr as far as it was kept; borrowed */
	/* Counters before the execution. */
	struct cgroup_counts before;
	uint64_t cpu_before_us;
	uint32_t denials_before[BOX_DENIAL_COUNTS];
};

void evidence_begin(struct evidence *v, struct engine *e);
void evidence_done(struct evidence *v);
/* Fills success, error, kind, exit_code and denials of r. */
void exit_cause_reach(const struct evidence *v, struct engine *e, const struct policy *p,
		      struct cordon_result *r);
