/* cli/verbose.h - what a session does, told on standard error while it does it. */
#pragma once

#include <stddef.h>

#include "cli/option.h"

struct verbose {
	bool as_json;
};

/* A cordon_log_fn; arg is a struct verbose. */
void verbose_print(const char *line, size_t len, void *arg);
