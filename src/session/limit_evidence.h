/* session/limit_evidence.h - which limit an execution met. Counters and peaks of a sandbox are
 * never reset, and several contexts share them. So a limit is blamed if it was reached during this
 * execution; or if it had been reached before and the code's stderr says that it met it. */
#pragma once

#include "session/exit_cause.h"

/* What had been reached before the execution. */
void limit_evidence_begin(struct evidence *v, struct engine *e, const struct policy *p);
/* Remembers for the next one what this one reached. */
void limit_evidence_end(const struct evidence *v, struct engine *e, const struct policy *p);

/* The guest says that it could not start a process. */
bool limit_is_crowded(const struct evidence *v, struct engine *e, const struct policy *p);
/* The code failed and nobody says why. */
bool limit_has_been_crowded(const struct evidence *v, struct engine *e, const struct policy *p);
/* A shell that could not start a process says so and may go on. */
bool limit_was_met_by_forks(const struct evidence *v, struct engine *e, const struct policy *p);
bool limit_has_filled_memory(const struct evidence *v, const struct engine *e,
			     const struct policy *p);
bool limit_has_filled_disk(const struct evidence *v, const struct engine *e);
/* Confirmed by the host's own figures: a process was killed for it, or nearly all of the limit was
 * in use. */
bool limit_is_out_of_memory(const struct evidence *v, const struct engine *e,
			    const struct policy *p);
bool limit_is_full(const struct engine *e);
bool limit_has_no_inode(const struct engine *e);
