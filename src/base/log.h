/* base/log.h - logging for programs only; library code never logs. Text or JSON lines on stderr. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_setup(enum log_level max, bool json); /* default: LOG_WARN as text */
void log_at(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* One line: prefix, then the chain of messages joined by ": ". */
void log_error_chain(const char *prefix, const struct cordon_error *e);
