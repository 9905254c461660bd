/* serve/e2b/e2b_template.h - what a sandbox is made from: `template` names a policy file of ours.
 */
#pragma once

#include <cordon/policy.h>

#include "base/error.h"

/* Those that the SDKs name by themselves mean the base. limit: what the key allows at most, which
 * is then the base, and which a file can only narrow; NULL: no limit. CORDON_NOT_FOUND: there is no
 * such file. directory NULL: only the base. */
int e2b_template_policy(const char *directory, const char *name, const struct cordon_policy *limit,
			struct cordon_policy **ret, struct cordon_error **reterr);
