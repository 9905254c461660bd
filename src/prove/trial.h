/* prove/trial.h - one attack carried out once: in the sandbox, through the same launch as guests,
 * or outside as its positive control. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "guest/guest.h"
#include "policy/policy.h"
#include "prove/bait.h"

/* An attack: of the C program (wall/linux/probe/list.h) or of the Python file beside it. */
struct attack {
	const char *name, *words;
	bool is_python;
	int control;    /* enum probe_control */
	uint32_t flags; /* PROBE_* */
	const char *holds;
};

/* All of them; *ret_count. */
const struct attack *attack_table(size_t *ret_count);

enum trial_outcome {
	TRIAL_HELD,
	TRIAL_OPEN,
	TRIAL_NOT_HERE, /* not applicable on this machine or to this user */
	TRIAL_LACKING,  /* open without namespaces, as documented */
	TRIAL_BROKEN,   /* neither: crashed, or did not start */
};

struct trial {
	enum trial_outcome outcome;
	char said[64];       /* "EPERM", "killed by SIGSYS" */
	bool is_noticed;     /* the filter reported the call */
	bool is_deaf;        /* nobody listens to the filter */
	uint64_t peak_bytes; /* of its control group; 0: it has none */
};

/* The program of the C attacks. */
extern const unsigned char cordon_probe_bytes[];
extern const unsigned long cordon_probe_bytes_len;

struct trial_options {
	const struct attack *attack;
	const struct bait *bait;
	const struct policy *policy;
	enum guest_kind kind; /* under whose view and filter */
	uint32_t layers_off;
	bool is_empty;    /* PROBE_CHARGED: for comparison, it uses nothing */
	const char *seal; /* a filter in hexadecimal that the attack comes after; NULL: none */
};

int trial_inside(const struct trial_options *o, struct trial *ret, struct cordon_error **reterr);
int trial_outside(const struct trial_options *o, struct trial *ret, struct cordon_error **reterr);
