/* guest/mounts.h - adds the policy's mounts to a guest's view. */
#pragma once

#include "base/error.h"
#include "policy/policy.h"
#include "wall/launch.h"

/* Binds live mounts. Copies snapshots and bytes outside the workspace now, as files of the root.
 * The session copies those inside the workspace (mounts_is_inside). */
int mounts_add(struct launch *l, const struct policy *p, struct cordon_error **reterr);
/* Whether a guest path is inside the workspace's trees. */
bool mounts_is_inside(const char *guest_path);
/* Where live mount i of a policy is bound. The workspace is mounted later and would hide a mount
 * inside it, so the session makes a link there. */
enum { MOUNTS_PLACE = 32 };
const char *mounts_place(const struct policy *p, size_t i, char buf[static MOUNTS_PLACE]);
/* The mount that contains a guest path, or NULL. */
const struct policy_mount *mounts_at(const struct policy *p, const char *guest_path);
/* The live mount that contains a guest path, or NULL. */
const struct policy_mount *mounts_live_at(const struct policy *p, const char *guest_path);
