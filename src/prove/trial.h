/* prove/trial.h - one attack, run once: in the sandbox, launched like a guest, or outside as the
 * positive control. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "guest/guest.h"
#include "policy/policy.h"
#include "prove/bait.h"
#include "wall/attack_table.h"

enum trial_outcome {
	TRIAL_HELD,
	TRIAL_OPEN,
	TRIAL_NOT_HERE, /* does not apply to this machine or user */
	TRIAL_LACKING,  /* open without namespaces, as documented */
	TRIAL_BROKEN,   /* neither: it crashed or did not start */
};

struct trial {
	enum trial_outcome outcome;
	char said[64];       /* "EPERM", "killed by SIGSYS" */
	bool is_noticed;     /* the filter reported the call */
	bool is_nonotify;    /* the filter has no listener */
	uint64_t peak_bytes; /* of its control group; 0: it has none */
};

struct trial_options {
	const struct attack *attack;
	const struct bait *bait;
	const struct policy *policy;
	enum guest_kind kind; /* whose view and filter to use */
	uint32_t layers_off;
	bool is_empty;    /* PROBE_CHARGED: a run for comparison, which uses nothing */
	bool joins;       /* the attack is a guest that joins a place */
	bool is_forked;   /* the attack is in a session that a template forked (attack_forked.h) */
	const char *seal; /* a filter in hexadecimal that is loaded before the attack; NULL: none */
};

int trial_inside(const struct trial_options *o, struct trial *ret, struct cordon_error **reterr);
int trial_outside(const struct trial_options *o, struct trial *ret, struct cordon_error **reterr);
