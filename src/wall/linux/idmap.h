/* wall/linux/idmap.h - an id-mapped mount: shows a directory of another user as the sandbox's own.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* For writable mounts that root gives to a sandbox: makes an unattached mount of path on which the
 * files of its owner belong to the sandbox. *ret_fd -1: they already do. */
int idmap_open(const char *path, uid_t uid, gid_t gid, int *ret_fd, struct cordon_error **reterr);
