/* wall/linux/ladder.h - the layers of this machine, one by one, for `cordon doctor`. */
#pragma once

#include "wall/linux/machine.h"

/* Adds user, rung, layers, what is missing, and the control groups to the report. */
void ladder_report(const struct machine *m, json_t *report);
