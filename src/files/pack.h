/* files/pack.h - writes a workspace's trees as a tar stream. */
#pragma once

#include "files/tar.h"
#include "files/workspace.h"

/* The whole workspace without its mounts, with the guest's names ("home/user/a"). 0 or -errno. The
 * caller has entered the owner's ids. */
int pack_workspace(struct workspace *ws, struct tar *t);

/* Writes a plain tar stream to a descriptor. *ret_report_json, which may be NULL: what was left
 * out. */
int pack_to_fd(struct workspace *ws, const char *path, int tar_fd, char **ret_report_json,
	       struct cordon_error **reterr);
