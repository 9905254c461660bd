/* files/pack.h - a workspace's trees as a tar stream. */
#pragma once

#include "files/tar.h"
#include "files/workspace.h"

/* The whole workspace, with names as the guest has them ("home/user/a"), without mounts.
 * 0 or -errno; the caller works as the owner. */
int pack_workspace(struct workspace *ws, struct tar *t);
/* A directory, with names from inside it, or one file. */
int pack_path(struct workspace *ws, const char *path, struct tar *t);

/* As a plain tar stream to a descriptor. */
int pack_to_fd(struct workspace *ws, const char *path, int tar_fd, struct cordon_error **reterr);
