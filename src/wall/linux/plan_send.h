/* wall/linux/plan_send.h - sends the plan and its descriptors to a supervisor that already runs. */
#pragma once

#include "base/error.h"
#include "wall/linux/blueprint.h"
#include "wall/linux/cgroup.h"
#include "wall/linux/format.h"

struct plan_send {
	int fds[INIT_FD_END];    /* by the numbers that they get in cordon-init */
	int mounts[PLAN_MOUNTS]; /* those of them that we own */
	uint32_t mount_count;
};

void plan_send_init(struct plan_send *p, const struct cgroup *c);
/* Maps the ids of writable mounts if root starts the sandbox, so that their files belong to the
 * sandbox. */
int plan_send_map_mounts(struct plan_send *p, uid_t uid, gid_t gid,
			 struct blueprint_options *blueprint, struct cordon_error **reterr);
/* Sends to each of the three processes: the supervisor, pid 1 and the one that becomes the guest.
 * If they are already gone, the status page says why. */
int plan_send_send(const struct plan_send *p, int socket, int plan_fd,
		   struct cordon_error **reterr);
/* Tells pid 1 of a place to start a guest: descriptors by their numbers in cordon-init, -1: none.
 * Does not wait. 0 or -errno. */
enum { PLAN_SEND_JOIN = INIT_FD_STATUS + 1 };
int plan_send_join(const int fds[static PLAN_SEND_JOIN], int socket);
/* An order for pid 1 with one descriptor, at INIT_FD_CONTROL. Does not wait. 0 or -errno. */
int plan_send_order(char order, int fd, int socket);
void plan_send_done(struct plan_send *p);
#define cleanup_plan_send CLEANUP(plan_send_done)
