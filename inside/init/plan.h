/* inside/init/plan.h - the mapped plan and status page inside cordon-init and its reapers. */
#pragma once

#include <stdbool.h>

#include "wall/linux/format.h"

struct job {
	const struct plan *plan; /* read-only mapping; NULL: not received yet */
	uint32_t flags;          /* of the plan; before it arrives, those of PLANF_EARLY */
	struct status *status;   /* shared mapping */
	int locks_fd;            /* the kernel's list of the sandbox's locks; 0: none (locks.h) */
	bool is_session;         /* a template forked it */
};

/* Maps and checks the plan's outer bounds. 0 or -errno. */
int plan_map(struct job *j, int plan_fd, int status_fd);
int plan_map_status(struct job *j, int status_fd);
int plan_map_plan(struct job *j, int plan_fd);
void plan_unmap(struct job *j);
/* Waits for the plan on INIT_FD_PLAN and moves it and its descriptors to their numbers, which must
 * be free. -1: it did not come, because the host gave up or as recorded. */
int plan_receive(struct job *j);

/* Text or bytes at an offset of the plan. Offset 0 is the empty string. */
const char *plan_text(const struct job *j, uint32_t offset);
const void *plan_at(const struct job *j, uint32_t offset);

/* Whether pid 1 stays when its first guest ends. A template's does not, those of its sessions do.
 */
static inline bool plan_stays(const struct job *j)
{
	return (j->flags & PLANF_STAYS) && (!(j->flags & PLANF_TEMPLATE) || j->is_session);
}

/* Records when a step was done. */
void plan_mark(struct job *j, enum mark mark);
/* Records where set-up failed and returns -1, so that a failing step is one statement. */
int plan_fail(struct job *j, enum stage stage, uint32_t detail, int os_errno);
