/* guest/mounts.h - the policy's mounts, as far as they are part of a guest's view. */
#pragma once

#include "base/error.h"
#include "policy/policy.h"
#include "wall/launch.h"

/* Live mounts are bound. Snapshots and bytes outside the workspace become files of the root, copied
 * now; those inside it are the session's to copy (mounts_is_inside). */
int mounts_add(struct launch *l, const struct policy *p, struct cordon_error **reterr);
/* Whether a guest path lies in the workspace's trees. */
bool mounts_is_inside(const char *guest_path);
