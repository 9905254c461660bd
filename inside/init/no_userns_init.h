/* inside/init/no_userns_init.h - without namespaces: the private directory, and ending its
 * processes. */
#pragma once

#include "inside/init/plan.h"

/* Fills the private directory, and opens its workspace. 0 or -1 with the failure recorded. */
int no_userns_build(struct job *j, int *ret_fd);
/* Kills every process below us and waits for all of them; we are their subreaper. */
void no_userns_end(void);
/* Removes the directory and all that the guest left in it. */
void no_userns_remove(const struct job *j);
