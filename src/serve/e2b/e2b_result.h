/* serve/e2b/e2b_result.h - an execution's outcome as the messages of the code interpreter. */
#pragma once

#include "base/json.h"
#include "serve/e2b/e2b_context.h"

/* What was displayed and the value ("result"), and what failed ("error"), in this order. */
json_t *e2b_result_messages(const struct e2b_context *c, const struct cordon_result *r);
