/* prove/attack_session.h - an attack in Python that takes a session, or two of one template: on
 * what comes after an execution, and on the sessions beside it. */
#pragma once

#include "prove/trial.h"

/* Outside it is carried out as every other one in Python is. */
int attack_session_inside(const struct trial_options *o, struct trial *ret,
			  struct cordon_error **reterr);
