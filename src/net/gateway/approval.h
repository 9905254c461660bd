/* net/gateway/approval.h - asks the host program about requests: requests that share a question,
 * when a question ends, and how many may stay unanswered. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	APPROVALS_OPEN = 64,        /* questions that wait, or ended without an answer */
	APPROVALS_FORGET_MS = 1000, /* so often one that ended without is forgotten */
};

struct conn;
struct hub;
struct approval;

struct approvals {
	struct approval *first;
	unsigned open; /* those that wait, and those not yet forgotten */
	uint64_t forgotten_ns;
};

/* Asks, or joins a request that asks the same. false: c was refused, because too many questions
 * stayed unanswered. */
bool approval_ask(struct conn *c);
/* c does not wait any more. The host program is told when nobody does. */
void approval_leave(struct conn *c);
/* The host program's answer, for all who wait for it. */
void approval_answer(struct hub *hub, uint64_t id, bool allow, const char *reason);
void approvals_done(struct approvals *a);
