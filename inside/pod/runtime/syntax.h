/* inside/pod/runtime/syntax.h - whether a text is shell: asked of the pod's own bash, which runs
 * nothing of it. The answer is shell_is_broken() of inside/guests/sh/shell.h. */
#pragma once

#include "inside/pod/runtime/process.h"

/* The process whose forks parse; once, before the first question. */
void syntax_use(struct w2c_sys *p);
