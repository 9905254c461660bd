/* session/execution_messages.h - what the guest sends about an execution, besides tool calls: its
 * result and rich outputs, both bounded. */
#pragma once

#include "session/execution.h"

/* Ends the execution. */
void execution_take_result(struct execution *x, const struct wire_message *m);
/* An output that does not fit is counted as lost. */
void execution_take_output(struct execution *x, const struct wire_message *m);
/* Adds a warning when outputs were lost. */
void execution_tell_lost_outputs(const struct execution *x);
