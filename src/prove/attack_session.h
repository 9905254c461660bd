/* prove/attack_session.h - attacks in Python that need a session, or two sessions of one template:
 * against what follows an execution, and against other sessions. */
#pragma once

#include "prove/trial.h"

/* Outside the sandbox, these run like every other attack in Python. */
int attack_session_inside(const struct trial_options *o, struct trial *ret,
			  struct cordon_error **reterr);
