/* policy/limits.h - the short limit names of R clients: cpu, memory, fsize, nproc, nofile, stack.
 */
#pragma once

#include "policy/field.h"

/* Applies {"cpu": 60, ...} to *p. */
int limits_read(struct policy *p, const json_t *obj, struct cordon_error **reterr);
/* The field of a short name, or NULL. */
const struct field *limits_find(const char *name);
/* Refuses unknown names and lists the valid ones. */
int limits_refuse(const char *names, struct cordon_error **reterr);
int limits_read_one(struct policy *p, const char *name, const json_t *j,
		    struct cordon_error **reterr);
