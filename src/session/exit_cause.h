/* session/exit_cause.h - why an execution ended, from the host's own evidence. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/policy.h"
#include "session/engine.h"
#include "session/result.h"

struct evidence {
	bool timed_out, cancelled, over_cpu;
	bool killed;    /* timed out or cancelled, and the code did not stop by itself */
	bool is_urgent; /* the caller did not want it to be asked */
	uint64_t timeout_ms;
	char *protocol;       /* how the guest broke the protocol, or NULL */
	char *internal;       /* what failed in the host, or NULL */
	bool has_failed_call; /* the host answered a tool call with an error */
	bool has_result;      /* the guest sent a result; the fields below are its claims */
	bool ok, has_exit_code;
	int exit_code;
	char *kind, *name, *message;
	char *told; /* requests that the guest's runtime says it refused, a JSON array; NULL: none
		     */
	struct workspace *workspace; /* borrowed, as is cwd; NULL: unknown */
	const char *cwd; /* current directory as the guest reports it; NULL: where it started */
	const char *err_text; /* the part of stderr that was kept; borrowed */
	/* Counters as they were before the execution. */
	struct box_counts before;
	uint64_t cpu_before_us;
	uint64_t watched_before; /* the peak of memory that the wall measured itself */
	bool was_crowded;        /* the limit on processes had been reached */
	bool was_full;           /* the workspace was full */
	uint32_t denials_before[BOX_DENIAL_COUNTS];
};

void evidence_begin(struct evidence *v, struct engine *e, const struct policy *p);
void evidence_done(struct evidence *v);
/* Fills success, error, kind, exit_code and denials of r. */
void exit_cause_reach(const struct evidence *v, struct engine *e, const struct policy *p,
		      struct cordon_result *r);
