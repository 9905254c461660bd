/* inside/init/root.h - builds the private root and the workspace from the plan's steps. */
#pragma once

#include "inside/init/plan.h"

/* The root is built on a mount over /tmp, which exists everywhere (skeleton.h). Through this
 * descriptor, the host's files below /tmp can still be bind sources. */
#define ROOT_SCRATCH "/tmp"
enum { ROOT_SCRATCH_FD = 60 };
#define ROOT_SCRATCH_FD_PATH "/proc/self/fd/60"

/* After skeleton_build: builds the rest of the root from the plan. 0, or -1 with the failure
 * recorded, as below. */
int root_build(struct job *j);
/* Makes it read-only and does pivot_root. The old root is then mounted on top of it; only our
 * working directory is still in it. */
int root_pivot(struct job *j);
/* Applies the plan's steps, relative to the working directory. */
int root_apply(struct job *j, enum stage stage);
/* Unmounts the old root, which waits for an RCU grace period. No untrusted code runs before. */
int root_leave(struct job *j);
/* Mounts the session's tmpfs and binds its trees; *ret_fd: its root, O_PATH. */
int root_workspace(struct job *j, const char *data, int *ret_fd);
/* Of a session that a template forked: puts a file of its own with the bytes of this descriptor in
 * the place of the template's, for reading. Called before root_workspace. */
int root_own_file(struct job *j, const char *path, int bytes);
/* Mounts a proc that shows only the sandbox's processes. Files in the directory `files` (without a
 * trailing slash) are bound over the kernel's; NULL: none. */
int root_proc(struct job *j, const char *place, const char *files);
/* Opens the job's locks_fd in an unrestricted proc. root_proc does so if it binds files. */
void root_keep_locks(struct job *j, const char *place);
