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
	int userns_errno;        /* why it does not */
	const char *userns_step; /* which step failed */
	bool has_seccomp_notify;
	/* Our own namespaces, in the order of the plan. A sandbox's namespace counts only if it
	 * differs. 0: cannot be read. */
	uint64_t namespaces[MACHINE_NAMESPACES];
	/* Where cgroups can be made; "": the controller cannot be used. */
	char cgroup_dir[MACHINE_CONTROLLERS][256];
	bool cgroup_v2;       /* one directory with all controllers: cgroup_dir[0] */
	char cgroup_why[160]; /* why there are none */
	uid_t box_uid;        /* machine_box_uid() */
	bool has_box_uids; /* it is the first of a range, from which each sandbox gets a uid of its
			      own */
	bool is_host_root; /* that uid is 0 outside our user namespace, so limits do not apply to it
			    */
	bool is_root;      /* root of this machine: it can switch to the sandboxes' uids */
};

/* Host uids for sandboxes that root starts. They own no files and are outside the ranges of systemd
 * (UIDS-GIDS), shadow's subordinate ids, SSSD, Kubernetes and OpenShift. The kernel counts many
 * things per uid (descriptors in flight, pipes, watches), so each sandbox has its own: the first of
 * the range plus the pid of its supervisor, which is the last process of the sandbox to end. The
 * second half is for sandboxes whose uid must be known before there is a supervisor. The first id
 * is the group of all, and the gateway's uid. */
enum { MACHINE_BOX_UID = 2100000000, MACHINE_BOX_UIDS = 1 << 23, MACHINE_BOX_LATER = 1 << 22 };
/* For a container with at most 65,536 ids: one uid for all sandboxes, in an unused range. */
enum { MACHINE_LONE_UID = 65530 };
/* The first of the host uids of sandboxes; our own uid if we cannot switch to it. */
uid_t machine_box_uid(void);

/* Cheap facts for every launch (microseconds), without starting a process. _first: what is needed
 * to start one; then the rest. */
void machine_look_first(struct machine *ret);
void machine_look_further(struct machine *ret);
/* Both, and tries in a child a user namespace with all that a sandbox needs in it. */
void machine_probe(struct machine *ret);
/* Why a layer (policy_layer bit) is missing, and the remedy; NULL: it is available. */
const char *machine_missing(const struct machine *m, uint32_t layer, const char **ret_remedy);
