/* cli/verbose.h - prints the steps of a session on standard error as they happen. */
#pragma once

#include <stddef.h>

#include "cli/option.h"

struct verbose {
	bool as_json;
};

/* A cordon_log_fn; arg is a struct verbose. */
void verbose_print(const char *line, size_t len, void *arg);
