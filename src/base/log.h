/* base/log.h - errors of programs, as lines on stderr; library code never logs. */
#pragma once

#include "base/error.h"

/* One line: the program's name, then the text, with control characters escaped. */
void log_error(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* One line: prefix, then the chain of messages joined by ": ". */
void log_error_chain(const char *prefix, const struct cordon_error *e);
