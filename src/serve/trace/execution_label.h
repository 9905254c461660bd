/* serve/trace/execution_label.h - what an execution is called in metrics and traces. The names are
 * from lists, so nothing that a client chose gets there. */
#pragma once

#include <stddef.h>

enum { EXECUTION_LABEL_LANGUAGES = 6, EXECUTION_LABEL_OUTCOMES = 24 };

/* Indexes; 0 is "other": also for NULL and unknown names. */
size_t execution_label_language(const char *name);
size_t execution_label_outcome(const char *name);
/* Texts that stay valid. */
const char *execution_label_language_name(size_t index);
const char *execution_label_outcome_name(size_t index);
/* The outcomes that are limits of the policy; ends with NULL. */
extern const char *const execution_label_limits[];
/* One of them; NULL: the outcome is no limit. */
const char *execution_label_limit(const char *outcome);
