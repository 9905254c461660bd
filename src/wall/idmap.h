/* wall/idmap.h - a directory of another user's as the sandbox's own: a mount that maps ids. */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* For root, which gives a writable mount to a sandbox of those ids: an unattached mount of path on
 * which the files of its owner are the sandbox's. *ret_fd -1: they are already. */
int idmap_open(const char *path, uid_t uid, gid_t gid, int *ret_fd, struct cordon_error **reterr);
