/* session/execution_buffer.h - the binary columns of an execution (docs/values.md): those of its
 * variables on their way in, those of its value on their way out.
 *
 * The host makes both files. The guest asks for them, and gets a descriptor. So the host takes no
 * descriptor from the guest and needs to trust none, RLIMIT_FSIZE of the guest does not matter, and
 * the pages of a value belong to the sandbox that fills them. */
#pragma once

#include "session/execution.h"

/* Checks and seals what the options bring. */
int execution_buffer_begin(struct execution *x, struct cordon_error **reterr);
/* Answers a guest that asks for a file. */
int execution_buffer_answer(struct execution *x, const struct wire_message *m,
			    struct cordon_error **reterr);
/* Seals and checks the columns of a result, before anything of it is used. */
int execution_buffer_take(struct execution *x, const struct wire_message *m,
			  struct cordon_error **reterr);
void execution_buffer_end(struct execution *x);
