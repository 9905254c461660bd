/* session/script.h - an attack written in Python, carried out by the Python guest or outside. */
#pragma once

#include "session/trial.h"

int script_inside(const struct trial_options *o, struct trial *ret, struct cordon_error **reterr);
int script_outside(const struct trial_options *o, struct trial *ret, struct cordon_error **reterr);
