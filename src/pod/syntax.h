/* pod/syntax.h - whether a text is shell: asked of the pod's own bash, which runs nothing of it.
 * The answer is shell_is_broken() of inside/guests/sh/shell.h. */
#ifndef POD_SYNTAX_H
#define POD_SYNTAX_H

#include "process.h"

/* The process whose forks parse; once, before the first question. */
void syntax_use(struct w2c_sys *p);

#endif
