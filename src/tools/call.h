/* tools/call.h - one tool call, and the slot for its answer.
 *
 * A call has two owners: the dispatcher, which wants the answer, and, once its handler said
 * "pending", the handler. Either may leave first. A dispatcher that gave up (timeout, end of the
 * execution) abandons the call; a later answer is dropped and can never reach another call. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "cordon/tools.h"

struct tool;
struct command_run;

/* Shared by a dispatcher and its calls: what other threads touch. */
struct call_slot {
	atomic_uint refs;
	pthread_mutex_t lock; /* guards every call's fields marked (lock) */
	int wake_fd;          /* eventfd: something was answered or resolved */
};

enum { CALL_ID_HEX = 32 };

enum call_stage {
	CALL_APPROVAL, /* waits for somebody to decide */
	CALL_RUNNING,  /* its handler or command was started */
};

struct cordon_call {
	atomic_uint refs;
	struct call_slot *box;
	struct cordon_tools *registry;
	const struct tool *tool;
	uint64_t number; /* the guest's, within its execution */
	uint64_t result_max;
	/* The dispatcher's own. */
	enum call_stage stage;
	int cause; /* enum tool_calls_cause: why it is answered as it is */
	uint64_t started_ns;
	deadline_ns deadline;
	struct command_run *run;
	size_t held; /* bytes that it keeps in the host while it is pending, as the dispatcher
			counts */
	struct cordon_call *prev, *next;
	/* (lock) */
	bool is_pending;   /* the handler said so: its reference goes with its answer */
	bool is_claimed;   /* the handler has answered */
	bool is_abandoned; /* nobody waits any more */
	bool is_answered, is_error;
	char *answer;
	size_t answer_len;
	bool is_resolved, is_allowed; /* the approval */
	char *reason;
	char approval_id[CALL_ID_HEX + 1];
	/* Never changes; the texts follow the struct. */
	const char *session, *args;
	size_t args_len;
};

struct call_slot *call_slot_new(void);
struct call_slot *call_slot_ref(struct call_slot *b);
struct call_slot *call_slot_unref(struct call_slot *b);

struct call_new {
	struct call_slot *box;
	struct cordon_tools *registry;
	const struct tool *tool;
	uint64_t number, result_max;
	const char *session, *args;
	size_t args_len;
};
struct cordon_call *call_new(const struct call_new *n); /* NULL: out of memory */
struct cordon_call *call_unref(struct cordon_call *c);
/* Runs the tool's function. True: it is answered now; false: it is pending. */
bool call_run(struct cordon_call *c);
/* An answer from the dispatcher itself (a command's, a resolution's, a refusal). Takes text. */
void call_settle(struct cordon_call *c, bool is_error, char *text);
/* From here on answers are ignored. */
void call_abandon(struct cordon_call *c);
/* Ends a call that took too long; a later answer of its handler is ignored. */
void call_time_out(struct cordon_call *c);
/* Starts the tool's host command; if it cannot be started, the call is answered with an error. Its
 * descriptors are added to epoll_fd with the call as their pointer. */
int call_start_command(struct cordon_call *c, int epoll_fd, struct cordon_error **reterr);
/* The command has ended: its output is the answer. */
void call_take_command(struct cordon_call *c);
/* Whether a pending call can go on, because of an answer, a decision or its deadline. */
bool call_is_ready(struct cordon_call *c, bool *ret_late);
