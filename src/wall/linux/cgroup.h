/* wall/linux/cgroup.h - one sandbox's control groups: kernel accounting for memory, processes and
 * CPU. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "policy/policy.h"
#include "wall/linux/machine.h"
#include "wall/wall.h"

struct cgroup {
	uint32_t count; /* v1: directories, one per controller; v2: 1; 0: none */
	bool is_v2;
	bool has_cpu;
	/* As read back after setting; UINT64_MAX: none. */
	uint64_t memory_bytes, processes, cpu_percent;
	char name[64];                       /* of the directories */
	int parent_fds[MACHINE_CONTROLLERS]; /* the directories that contain them */
	bool is_below;                       /* those belong to the template */
	int dir_fds[MACHINE_CONTROLLERS];
	int peak_fd;                       /* memory peak, read after every execution */
	int join_fds[MACHINE_CONTROLLERS]; /* v1: `tasks`, for writing; v2: the directory */
	int supervisor_fd; /* v2: the group of supervisors, because a supervisor cannot remove the
			      group that it is in; -1: none */
};

struct cgroup_options {
	/* Group that may remove the control groups: the supervisor's, which outlives a dead host.
	 * -1: our own. */
	gid_t owner_gid;
	/* The template's groups, whose supervisor cleans up and which outlive this one; NULL:
	 * none */
	const struct cgroup *below;
	bool limits_later; /* v1: cgroup_limit() follows before anything runs in them */
};

/* Makes the groups and sets their limits. If there is no usable place, *ret is empty, and that is
 * not an error. */
int cgroup_make(const struct machine *m, const struct policy *p, const struct cgroup_options *opts,
		struct cgroup *ret, struct cordon_error **reterr);
/* Sets the policy's limits and reads them back. */
int cgroup_limit(struct cgroup *c, const struct policy *p, struct cordon_error **reterr);
/* The highest number of processes at the same time; 0: unknown. */
uint64_t cgroup_pids_peak(const struct cgroup *c);
/* Processes and threads now; 0: unknown. */
uint64_t cgroup_pids_now(const struct cgroup *c);
/* How many processes and threads there ever were at a time, in earlier uses too; 0: unknown. */
uint64_t cgroup_tasks_most(const struct cgroup *c);
void cgroup_read(const struct cgroup *c, struct box_counts *ret);
/* CPU time in microseconds of everything that ran in it, including earlier uses; 0: not counted. */
uint64_t cgroup_read_cpu(const struct cgroup *c);
uint64_t cgroup_read_peak(const struct cgroup *c); /* bytes; 0: unknown */
/* Resets used groups for the next session with the same limits. 1: done; 0: they still have
 * processes; -1: they have counters that cannot be reset. */
int cgroup_renew(struct cgroup *c);
/* Removes the directories if they are empty, and closes everything. */
void cgroup_done(struct cgroup *c);
