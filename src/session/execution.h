/* session/execution.h - the state of one execution: its code, its evidence and its clocks. */
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
	/* The deadline's clock stops while an approval is pending: for how long in total
	 * (stood_ns), what tool calls and network reported at the last check (asked_ns), and when
	 * that was (noted_ns). */
	uint64_t stood_ns, asked_ns, noted_ns;
	bool stands;
	bool is_named;        /* the guest was sent the message that interrupts this execution */
	bool is_signal_due;   /* send SIGINT again when the whole message is sent */
	deadline_ns stop_by;  /* it was asked to stop and is killed at this time; 0: not asked */
	int stops;            /* how many times it was asked */
	bool is_over;         /* the result arrived, or none will come */
	bool is_dead;         /* the engine cannot be used again */
	size_t outputs_bytes; /* bytes of rich outputs kept so far */
	uint64_t outputs_lost;
	struct stdin_feed in;
};

int execution_run(struct cordon_session *s, const struct cordon_execute_options *o,
		  struct cordon_result **ret, bool *ret_alive, struct cordon_error **reterr);
