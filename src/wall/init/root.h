/* wall/init/root.h - the private root and the workspace, built from the plan's steps. */
#pragma once

#include "wall/init/plan.h"

/* In the new namespaces, before pivot: builds the root at a scratch mount point and enters it; the
 * old one lies on top of it, where only our working directory still is. 0 or -1 with the failure
 * recorded. */
int root_build(struct job *j);
/* Carries the plan's steps out, relative to the working directory. */
int root_apply(struct job *j, enum stage stage);
/* Unmounts the old root, which waits for an RCU grace period: nothing foreign runs before. */
int root_leave(struct job *j);
/* Mounts the session's tmpfs and binds its trees; *ret_fd: its root, O_PATH. */
int root_workspace(struct job *j, const char *data, int *ret_fd);
int root_proc(struct job *j, const char *place);
