/* guests/sh/check.h - is this shell code, and does it call what a sandbox may restrict? */
#pragma once

#include "bytes.h"

/* What the code calls that a sandbox may restrict, as JSON strings with commas between them. */
void check_advice(const char *code, size_t len, struct bytes *ret);
/* Reads code on stdin, prints the verdict as JSON; the exit status. */
int check_main(void);
