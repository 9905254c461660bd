/* prove/attack_forked.h - an attack in a session that a template forked, behind a gateway if the
 * policy opens the network: one in Python as code of the session, a native one as a program that
 * the code starts, or as a guest that joins a place which the template forked. */
#pragma once

#include "prove/trial.h"

/* Attacks that a program started by the code cannot make: they need to be a guest, a terminal, the
 * wire, another list of commands, or a run for comparison; and what workspace_exec opens, which is
 * on so that the program can run. Those of PROBE_IDLE and PROBE_SIBLING are in such sessions
 * anyway. */
enum {
	ATTACK_NOT_FORKED = PROBE_ALONE | PROBE_BUILD | PROBE_COLUMNS | PROBE_TTY | PROBE_PASSED |
			    PROBE_LISTED | PROBE_CHARGED | PROBE_SWITCHED | PROBE_EXPOSED |
			    PROBE_IDLE | PROBE_SIBLING,
};

/* The policy must allow programs of the workspace. joins: the attack is a command, so a guest of
 * its own, in a place that the template forked; native ones only. */
int attack_forked_inside(const struct trial_options *o, struct trial *ret,
			 struct cordon_error **reterr);
