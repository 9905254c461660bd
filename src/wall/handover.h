/* wall/handover.h - the plan and the descriptors that go with it, for a supervisor that runs
 * already.
 */
#pragma once

#include "base/error.h"
#include "wall/blueprint.h"
#include "wall/cgroup.h"
#include "wall/format.h"

struct handover {
	int fds[INIT_FD_END];    /* by the numbers that they get there */
	int mounts[PLAN_MOUNTS]; /* of these, the ones that are ours to close */
	uint32_t mount_count;
};

void handover_init(struct handover *h, const struct cgroup *c);
/* What root lets a sandbox write is another user's: seen as the sandbox's own. */
int handover_map_mounts(struct handover *h, uid_t uid, gid_t gid,
			struct blueprint_options *blueprint, struct cordon_error **reterr);
/* To each of the supervisor's processes: the keeper, pid 1 and the one that becomes the guest. When
 * they are gone already, they have told why. */
int handover_send(const struct handover *h, int socket, int plan_fd, struct cordon_error **reterr);
void handover_done(struct handover *h);
#define cleanup_handover CLEANUP(handover_done)
