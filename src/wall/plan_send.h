/* wall/plan_send.h - the plan and the descriptors that go with it, for a supervisor that runs
 * already.
 */
#pragma once

#include "base/error.h"
#include "wall/blueprint.h"
#include "wall/cgroup.h"
#include "wall/format.h"

struct plan_send {
	int fds[INIT_FD_END];    /* by the numbers that they get there */
	int mounts[PLAN_MOUNTS]; /* of these, the ones that are ours to close */
	uint32_t mount_count;
};

void plan_send_init(struct plan_send *p, const struct cgroup *c);
/* What root lets a sandbox write is another user's: seen as the sandbox's own. */
int plan_send_map_mounts(struct plan_send *p, uid_t uid, gid_t gid,
			 struct blueprint_options *blueprint, struct cordon_error **reterr);
/* To each of the supervisor's processes: the supervisor, pid 1 and the one that becomes the guest.
 * When they are gone already, they have told why. */
int plan_send_send(const struct plan_send *p, int socket, int plan_fd,
		   struct cordon_error **reterr);
void plan_send_done(struct plan_send *p);
#define cleanup_plan_send CLEANUP(plan_send_done)
