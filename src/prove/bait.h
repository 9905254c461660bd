/* prove/bait.h - targets for attacks, laid out on the host: a file, sockets, a descriptor, shared
 * memory. Made for a proof and removed after it. */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "policy/policy.h"

enum { BAIT_FDS = 7, BAIT_ARGV = 64 };
/* The directory's path in the sandbox. */
#define BAIT_SHARED "/mnt/bait"

struct package_server;

struct bait {
	char dir[64];    /* directory of the files; "": none */
	char shared[72]; /* directory below it that the policy mounts for reading */
	char secret[33], marker[48];
	int fds[BAIT_FDS]; /* sockets, and a descriptor that must not be inherited */
	int shm;
	struct package_server *packages;
	json_t *built;       /* what came of attacks by build steps: attack_package.c */
	char program[80];    /* "" before bait_add_program */
	struct strlist args; /* KEY=VALUE for the attack (probe.h of the wall) */
};

/* Copies the attack program beside the file, to run it outside the sandbox. */
int bait_add_program(struct bait *b, const void *bytes, size_t len, struct cordon_error **reterr);
/* policy: its limits, which attacks try to exceed. is_mounted: a policy will mount the shared
 * directory; otherwise the code sees it at the host's path. has_groups: control groups do the
 * accounting. */
int bait_init(struct bait *b, const struct policy *policy, bool is_mounted, bool has_groups,
	      struct cordon_error **reterr);
/* Appends what an attack must know to the argc words of argv, which has BAIT_ARGV places. */
void bait_add_args(const struct bait *b, const char **argv, size_t argc);
/* Adds the mount to the policy. */
int bait_mount(const struct bait *b, struct policy *policy, struct cordon_error **reterr);
void bait_done(struct bait *b);
#define cleanup_bait CLEANUP(bait_done)
