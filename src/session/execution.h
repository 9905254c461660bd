/* session/execution.h - one execution: what runs, what is known about it, and its clocks. */
#pragma once

#include "session/exit_cause.h"
#include "session/output_stream.h"
#include "session/session.h"
#include "session/stdin_feed.h"

struct execution {
	struct cordon_session *session;
	struct engine *engine;
	const struct cordon_execute_options *options;
	struct cordon_result *result;
	struct evidence evidence;
	struct output_stream out, err;
	uint64_t id, started_ns;
	deadline_ns deadline;
	/* The clock, for approvals: how long it stood; what tool calls and network said, and when.
	 */
	uint64_t stood_ns, asked_ns, noted_ns;
	bool stands;
	deadline_ns stop_by;  /* it was asked to stop, and is made to then; 0: not */
	int stops;            /* how often it was asked */
	bool is_over;         /* a result came, or none will */
	bool is_dead;         /* the engine cannot go on */
	size_t outputs_bytes; /* of what was kept */
	uint64_t outputs_lost;
	struct stdin_feed in;
};

int execution_run(struct cordon_session *s, const struct cordon_execute_options *o,
		  struct cordon_result **ret, bool *ret_alive, struct cordon_error **reterr);
