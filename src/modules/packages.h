/* modules/packages.h - checks and prepares the packages that a policy allows in a pod. */
#pragma once

#include "base/error.h"
#include "policy/policy.h"

/* Before a pod is launched. Name, number, size, host and SHA-256 are judged here, in the host; what
 * is refused is in the table that the guest's `pkg` reads, with its reason. Nothing is done where
 * the policy names no package, or all is ready from before. */
int packages_prepare(const struct policy *p, struct cordon_error **reterr);
