/* guests/sh/check.h - is this shell code, and does it call what a sandbox may restrict? */
#pragma once

/* Reads code on stdin, prints the verdict as JSON; the exit status. */
int check_main(void);
