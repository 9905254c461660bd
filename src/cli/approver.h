/* cli/approver.h - decides about approvals: asks the person who runs `cordon`, or allows or denies
 * all. */
#pragma once

#include <cordon/cordon.h>

struct approver {
	struct cordon_session *session; /* set when the session is open */
	enum { APPROVAL_DENY, APPROVAL_ALLOW, APPROVAL_ASK } mode;
};

/* "ask", "allow" or "deny"; false: none of these. NULL: ask on a terminal, else deny. */
bool approval_mode(const char *text, struct approver *d);
/* A cordon_approval_fn; arg is a struct approver. */
void approval_decide(const struct cordon_approval *a, void *arg);
