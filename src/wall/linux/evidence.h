/* wall/linux/evidence.h - what the status page and the control groups prove, as JSON for the result
 * and for `cordon doctor`. */
#pragma once

#include "wall/linux/machine.h"
#include "wall/wall.h"

json_t *evidence_assurance(const struct box *box, const struct policy *p);
void evidence_usage(struct box *box, uint64_t *ret_cpu_us, uint64_t *ret_peak_bytes);
/* What this machine's wall lacks, in sentences; a new array. */
json_t *evidence_lacks(const struct machine *m);
