/* prove/attack_python.h - attacks written in Python, run by the Python guest or outside. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "cordon/session.h"
#include "prove/trial.h"

int attack_python_inside(const struct trial_options *o, struct trial *ret,
			 struct cordon_error **reterr);
int attack_python_outside(const struct trial_options *o, struct trial *ret,
			  struct cordon_error **reterr);

/* Makes the code that calls the function `role` + the attack's name (code is initialised here), and
 * its context, which the caller frees. */
int attack_python_code(const struct trial_options *o, const char *role, struct buf *code,
		       char **ret_context, struct cordon_error **reterr);
void attack_python_judge(struct cordon_result *r, struct trial *t);
/* The same from the text that try_attack() of the attacks returns. */
void attack_python_said(const char *said, struct trial *t);
/* KEY=VALUE for the attack; a new reference. */
json_t *attack_python_words(const struct bait *b);
