/* prove/attack_package.h - attacks in Python as the build step of a package that pip installs for a
 * session, through the same path as every package (docs/packages.md). */
#pragma once

#include "prove/trial.h"

/* Outside the sandbox, these run like every other attack in Python. */
int attack_package_inside(const struct trial_options *o, struct trial *ret,
			  struct cordon_error **reterr);
