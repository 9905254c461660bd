/* session/lure.h - things of the host laid out for attacks to be aimed at: a file, sockets, a
 * descriptor, shared memory. Made for a proof and gone after it. */
#pragma once

#include "base/error.h"
#include "base/str.h"
#include "policy/policy.h"

struct lure {
	char dir[64]; /* of the files; "" when there is none */
	char secret[33], marker[48];
	int fds[6]; /* sockets, and the descriptor that must not be inherited */
	int shm;
	char program[80];    /* "" before lure_plant */
	struct strlist args; /* KEY=VALUE for the attack (wall/probe/bait.h) */
};

/* A program (the bytes of the attacks) beside the file, to be started outside the wall. */
int lure_plant(struct lure *l, const void *bytes, size_t len, struct cordon_error **reterr);
/* policy: whose limits the attacks try to pass. */
int lure_lay(struct lure *l, const struct policy *policy, struct cordon_error **reterr);
void lure_clear(struct lure *l);
#define cleanup_lure CLEANUP(lure_clear)
