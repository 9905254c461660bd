/* inside/guests/sh/shell_check.h - checks shell syntax, and finds calls that a sandbox may
 * restrict. */
#pragma once

#include "inside/lib/bytes.h"

/* Calls in the code that a sandbox may restrict, as JSON strings separated by commas. */
void shell_check_advice(const char *code, size_t len, struct bytes *ret);
/* "complete", "incomplete" (more lines may make it valid) or "invalid". */
const char *shell_check_status(const char *code, size_t len);
/* Reads code on stdin and prints the outcome as JSON; returns the exit status. */
int shell_check_main(void);
