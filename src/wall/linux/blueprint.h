/* wall/linux/blueprint.h - makes the plan that cordon-init carries out, from policy, launch and
 * machine. The plan is plain data that a unit test reads without privileges. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "policy/policy.h"
#include "wall/launch.h"
#include "wall/linux/cgroup.h"
#include "wall/linux/format.h"
#include "wall/linux/machine.h"

struct blueprint_options {
	const struct policy *policy;
	const struct launch *launch;
	const struct machine *machine;
	const struct cgroup *cgroup;
	/* Without namespaces, the launch uses host paths (wall/linux/no_userns.h), and this
	 * directory holds what the guest may write. NULL: there are namespaces. */
	const char *private_dir;
	/* Host paths that the host has mounted itself, in the order of INIT_FD_MOUNT. */
	const char *made[PLAN_MOUNTS];
	uint32_t made_count;
	uint64_t tasks; /* without namespaces: the user's current number of processes and threads */
	uint32_t layers_off; /* policy_layer bits that `doctor --prove` switches off */
	/* Of a place: guests can join, and its root has the files of these launches too. */
	bool stays;
	const struct launch *const *also;
	size_t also_count;
	bool joins;       /* for a guest that joins a place: the plan has no root */
	bool on_terminal; /* of a guest that joins: its stdin is its controlling terminal */
	bool has_wire;    /* of a place or in one: the guest runs many executions */
};

/* The launches whose files the root has: `launch` is the first. NULL: there are no more. */
const struct launch *blueprint_launch(const struct blueprint_options *o, size_t i);

/* The flags of PLANF_EARLY, known before there are control groups. */
uint32_t blueprint_early_flags(const struct blueprint_options *o);
/* The plan's bytes. */
int blueprint_make(const struct blueprint_options *o, struct buf *ret,
		   struct cordon_error **reterr);
/* The filter for a launch: its bytes. */
const void *blueprint_filter(enum launch_filter guest, bool network, enum plan_filter which,
			     size_t *ret_len);
/* How a guest was sealed. */
struct blueprint_seal {
	enum launch_filter filter;
	bool has_network;
	bool is_forked; /* from a template, whose filter applies too */
	bool joins;     /* a place; that may be forked, from a template of another language */
	enum launch_filter template_filter;
	bool is_nonotify; /* the filter has no listener */
};
/* SHA-256 of the loaded filters, without the small ones that are added only if a layer is
 * missing. */
void blueprint_filter_hash(const struct blueprint_seal *s, uint8_t ret[static 32]);
