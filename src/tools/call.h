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

/* What other threads use, shared by a dispatcher and its calls. */
struct call_slot {
	atomic_uint refs;
	pthread_mutex_t lock; /* guards every call's fields marked (lock) */
	int wake_fd;          /* an event: a call was answered or an approval resolved */
};

enum { CALL_ID_HEX = 32 };

enum call_stage {
	CALL_APPROVAL, /* waits for a decision */
	CALL_RUNNING,  /* its handler or command was started */
};

struct cordon_call {
	atomic_uint refs;
	struct call_slot *slot;
	struct cordon_tools *registry;
	const struct tool *tool;
	uint64_t number; /* chosen by the guest, unique within its execution */
	uint64_t result_max;
	/* Used only by the dispatcher. */
	enum call_stage stage;
	int cause; /* enum tool_calls_cause: why it got this answer */
	uint64_t started_ns;
	deadline_ns deadline;
	struct command_run *run;
	size_t held; /* bytes that the pending call keeps in the host, counted by the dispatcher */
	struct cordon_call *prev, *next;
	/* (lock) */
	bool is_pending;   /* the handler said "pending"; it drops its reference when it answers */
	bool is_claimed;   /* the handler has answered */
	bool is_abandoned; /* the dispatcher no longer wants the answer */
	bool is_answered, is_error;
	char *answer;
	size_t answer_len;
	bool is_resolved, is_allowed; /* result of the approval */
	char *reason;
	char approval_id[CALL_ID_HEX + 1];
	/* Constant. The texts are stored behind the struct. */
	const char *session, *args;
	size_t args_len;
};

struct call_slot *call_slot_new(void);
struct call_slot *call_slot_unref(struct call_slot *s);

struct call_new {
	struct call_slot *slot;
	struct cordon_tools *registry;
	const struct tool *tool;
	uint64_t number, result_max;
	const char *session, *args;
	size_t args_len;
};
struct cordon_call *call_new(const struct call_new *n); /* NULL: out of memory */
struct cordon_call *call_unref(struct cordon_call *c);
/* Runs the tool's function. True: it has answered; false: it is pending. */
bool call_run(struct cordon_call *c);
/* Answers the call on behalf of the dispatcher (a command's output, a decision, a refusal). Takes
 * ownership of text. */
void call_settle(struct cordon_call *c, bool is_error, char *text);
/* Later answers are ignored. */
void call_abandon(struct cordon_call *c);
/* Ends a call that took too long. A later answer of its handler is ignored. */
void call_time_out(struct cordon_call *c);
/* Starts the tool's host command; if it cannot be started, the call is answered with an error. Its
 * descriptors are added to watch_fd with the call as their pointer. */
int call_start_command(struct cordon_call *c, int watch_fd, struct cordon_error **reterr);
/* The command has ended. Its output becomes the answer. */
void call_take_command(struct cordon_call *c);
/* Whether a pending call can continue: it was answered, decided, or its deadline passed. */
bool call_is_ready(struct cordon_call *c, bool *ret_late);
