/* inside/guests/sh/shell_check.h - is this shell code, and does it call what a sandbox may
 * restrict? */
#pragma once

#include "inside/lib/bytes.h"

/* What the code calls that a sandbox may restrict, as JSON strings with commas between them. */
void shell_check_advice(const char *code, size_t len, struct bytes *ret);
/* Reads code on stdin, prints the verdict as JSON; the exit status. */
int shell_check_main(void);
