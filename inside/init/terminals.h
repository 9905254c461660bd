/* inside/init/terminals.h - the terminals of a sandbox: a devpts of its own. */
#pragma once

#include "inside/init/plan.h"

/* Mounts a devpts on `dev`/pts, if the plan says so, and sends its ptmx to the host on this socket.
 * The code sees the terminals, but no ptmx: only the host makes terminals. The kernel may refuse
 * it all; then there are none. In a template it only makes the mount points, because each session
 * gets a devpts. 0, or -1 with the failure recorded. */
int terminals_mount(struct job *j, const char *dev, int control);
/* Makes stdin, a terminal, the controlling terminal of this process, which must lead a session. */
int terminals_take(void);
