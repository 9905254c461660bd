/* policy/public.h - the policy behind the public handle. */
#pragma once

#include "cordon/policy.h"
#include "policy/policy.h"

struct cordon_policy {
	struct policy p;
};
