/* modules/packages.h - checks and prepares the packages that a policy allows in a pod. */
#pragma once

#include "base/error.h"
#include "policy/policy.h"

/* Called before a pod is launched. The host checks name, number, size, host and SHA-256. A refused
 * package is in the table that the guest's `pkg` reads, with the reason. Does nothing if the policy
 * names no package, or if everything is ready. */
int packages_prepare(const struct policy *p, struct cordon_error **reterr);
