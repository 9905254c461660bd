/* wall/linux/machine.h - what this machine can enforce. Found by trying, never by looking for
 * marker files. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/json.h"

enum { MACHINE_CONTROLLERS = 3, MACHINE_NAMESPACES = 7 };
enum { CONTROLLER_MEMORY, CONTROLLER_PIDS, CONTROLLER_CPU };

struct machine {
	int landlock_abi;        /* 0: none */
	bool has_userns;         /* a user namespace with a mount inside it works */
	int userns_errno;        /* why not */
	const char *userns_step; /* which step failed */
	bool has_seccomp_notify;
	/* Our own namespaces, in the order of the plan: what a sandbox has counts as its own only
	 * against them. 0: cannot be read. */
	uint64_t namespaces[MACHINE_NAMESPACES];
	/* Where cgroups may be made; "" where a controller is not ours to use. */
	char cgroup_dir[MACHINE_CONTROLLERS][256];
	bool cgroup_v2;       /* one directory with all controllers: cgroup_dir[0] */
	char cgroup_why[160]; /* why there are none */
	uid_t box_uid;        /* machine_box_uid() */
	bool has_box_uids;    /* it is the first of a range: each sandbox has one of its own */
	bool is_host_root; /* that uid is 0 outside of our user namespace: limits do not hold it */
	bool is_root;      /* of this machine: it can become the sandboxes' own uid */
};

/* The host uids of sandboxes that root starts: in no one's files, and in none of the ranges that
 * systemd (UIDS-GIDS), shadow's subordinate ids, SSSD, Kubernetes and OpenShift take theirs from.
 * The kernel counts many things by uid (descriptors in flight, pipes, watches), so each sandbox has
 * its own: the first of the range and the pid of its supervisor, which is the last of the sandbox
 * to go. The second half is for those whose uid must be known before there is a supervisor; the
 * first id is the group of all, and the gateway's. */
enum { MACHINE_BOX_UID = 2100000000, MACHINE_BOX_UIDS = 1 << 23, MACHINE_BOX_LATER = 1 << 22 };
/* In a container that has at most 65,536 ids: one uid for all sandboxes, in a range that nobody
 * uses. */
enum { MACHINE_LONE_UID = 65530 };
/* The first of the uids that sandboxes have on the host, or our own where we cannot become it. */
uid_t machine_box_uid(void);

/* Cheap facts for every launch (microseconds); no process is started: what must be known to start
 * one, then the rest. */
void machine_look_first(struct machine *ret);
void machine_look_further(struct machine *ret);
/* Both, and tries a user namespace with all that the wall does in it, in a child. */
void machine_probe(struct machine *ret);
/* Why a layer (policy_layer bit) is missing and what helps; NULL when it is there. */
const char *machine_missing(const struct machine *m, uint32_t layer, const char **ret_remedy);
