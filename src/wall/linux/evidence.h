/* wall/linux/evidence.h - turns the status page and the control groups into JSON for the result and
 * for `cordon doctor`. */
#pragma once

#include "wall/linux/machine.h"
#include "wall/wall.h"

json_t *evidence_assurance(const struct box *box, const struct policy *p);
void evidence_usage(struct box *box, uint64_t *ret_cpu_us, uint64_t *ret_peak_bytes);
/* What the sandbox lacks on this machine, in sentences; a new array. */
json_t *evidence_lacks(const struct machine *m);
