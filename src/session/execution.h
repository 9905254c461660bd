/* session/execution.h - the state of one execution: its code, its evidence and its clocks. */
#pragma once

#include "session/exit_cause.h"
#include "session/network.h"
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
	bool is_named;      /* the guest was sent the message that interrupts this execution */
	bool is_signal_due; /* send SIGINT again when the whole message is sent */
	/* After the deadline or a cancel: when it is asked again or killed (stop_by; 0: it was not
	 * asked), when it is killed (kill_by), and how many times it was asked. */
	deadline_ns stop_by, kill_by;
	int stops;
	bool is_over;         /* the result arrived, or none will come */
	bool is_dead;         /* the engine cannot be used again */
	size_t outputs_bytes; /* bytes of rich outputs kept so far */
	uint64_t outputs_lost;
	/* Binary columns: of the variables (the caller's file), of the value (ours); -1: none. */
	int context_fd, value_fd;
	uint64_t context_bytes;
	bool is_context_sent; /* the guest gets it once */
	bool takes_buffer;
	struct stdin_feed in;
	struct network_turn turn;
};

int execution_run(struct cordon_session *s, const struct cordon_execute_options *o,
		  struct cordon_result **ret, bool *ret_alive, struct cordon_error **reterr);
