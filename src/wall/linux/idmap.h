/* wall/linux/idmap.h - id-mapped mounts: a directory of another user appears as the sandbox's
 * own. */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* For writable mounts of a sandbox that root starts: makes a detached mount of path on which files
 * of its owner belong to the sandbox. *ret_fd -1: they already do. */
int idmap_open(const char *path, uid_t uid, gid_t gid, int *ret_fd, struct cordon_error **reterr);
