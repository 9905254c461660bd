/* prove/attack_python.h - an attack written in Python, carried out by the Python guest or
 * outside. */
#pragma once

#include "prove/trial.h"

int attack_python_inside(const struct trial_options *o, struct trial *ret,
			 struct cordon_error **reterr);
int attack_python_outside(const struct trial_options *o, struct trial *ret,
			  struct cordon_error **reterr);
