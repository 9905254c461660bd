/* session/lure.h - things of the host laid out for attacks to be aimed at: a file, sockets, a
 * descriptor, shared memory. Made for a proof and gone after it. */
#pragma once

#include "base/error.h"
#include "base/str.h"
#include "policy/policy.h"

enum { LURE_FDS = 7 };
/* Where the folder is in the sandbox. */
#define LURE_SHARED "/mnt/lure"

struct lure {
	char dir[64];    /* of the files; "" when there is none */
	char shared[72]; /* folder below it that the policy mounts for the code to read */
	char secret[33], marker[48];
	int fds[LURE_FDS]; /* sockets, and the descriptor that must not be inherited */
	int shm;
	char program[80];    /* "" before lure_plant */
	struct strlist args; /* KEY=VALUE for the attack (wall/probe/bait.h) */
};

/* A program (the bytes of the attacks) beside the file, to be started outside the wall. */
int lure_plant(struct lure *l, const void *bytes, size_t len, struct cordon_error **reterr);
/* policy: whose limits the attacks try to pass. is_mounted: a policy will mount the shared folder,
 * else the code sees it where the host has it. has_groups: control groups count. */
int lure_lay(struct lure *l, const struct policy *policy, bool is_mounted, bool has_groups,
	     struct cordon_error **reterr);
/* Adds the mount. */
int lure_mount(const struct lure *l, struct policy *policy, struct cordon_error **reterr);
void lure_clear(struct lure *l);
#define cleanup_lure CLEANUP(lure_clear)
