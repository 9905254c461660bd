/* net/gateway/approval.h - asks the host program about requests. Requests with the same question
 * share it. The number of unanswered questions is bounded. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	APPROVALS_OPEN = 64, /* questions that are pending, or ended without an answer */
	APPROVALS_FORGET_MS =
		1000, /* how often a question that ended without an answer frees its place */
};

struct conn;
struct hub;
struct approval;

struct approvals {
	struct approval *first;
	unsigned open; /* questions that are pending or hold their place */
	uint64_t forgotten_ns;
};

/* Asks, or joins a pending request with the same question. False: c was refused because too many
 * questions are unanswered. */
bool approval_ask(struct conn *c);
/* c no longer waits. The host program is told when no connection waits for the question. */
void approval_leave(struct conn *c);
/* The host program's answer, for all connections that wait for it. */
void approval_answer(struct hub *hub, uint64_t id, bool allow, const char *reason);
void approvals_done(struct approvals *a);
