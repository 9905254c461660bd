/* inside/pod/runtime/syntax.h - checks shell syntax with the pod's own bash, without running the
 * code. Implements shell_is_broken() of inside/guests/sh/shell.h. */
#pragma once

#include "inside/pod/runtime/process.h"

/* The process whose forks parse; call once, before the first check. */
void syntax_use(struct w2c_sys *p);
