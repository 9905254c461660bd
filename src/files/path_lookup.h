/* files/path_lookup.h - resolves a guest path to a directory descriptor and one name in it. Shared
 * by the files of this room; all functions return 0 or a negative errno. */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/str.h"
#include "files/owner.h"
#include "files/workspace.h"

struct workspace {
	_Atomic unsigned refs;
	int root_fd;
	int tree_fd[WORKSPACE_TREES];
	int stage_fd; /* borrowed: where half-made files live; the root, which the guest cannot see
		       */
	struct workspace_options opts;
	bool is_tmpfs;
	_Atomic bool is_offloaded;       /* the contents are elsewhere */
	struct strlist mounts;           /* guest paths */
	struct strlist read_only_mounts; /* those of them that refuse writes */

	pthread_mutex_t lock; /* protects the estimate below, used only where no tmpfs counts */
	struct workspace_usage estimate;
	uint64_t estimate_ns;
};

/* Names of half-made and half-removed things in stage_fd. */
#define STAGE_PREFIX ".cordon-"
enum { STAGE_NAME_SIZE = 32 };
void path_lookup_stage_name(char ret[static STAGE_NAME_SIZE]);
bool path_lookup_is_stage_name(const char *name);

enum path_lookup_flags {
	PATH_LOOKUP_FOLLOW = 1 << 0,  /* a link at the end leads on */
	PATH_LOOKUP_PARENTS = 1 << 1, /* make missing directories on the way */
	PATH_LOOKUP_WRITE = 1 << 2,   /* a path outside the trees is EROFS, not ENOENT */
};

/* Besides the kernel's errnos: the path lies in a mount that refuses writes, or in no tree of the
 * workspace. The code may still see a file there. */
enum { PATH_LOOKUP_READ_ONLY_MOUNT = 4000, PATH_LOOKUP_OUTSIDE, PATH_LOOKUP_OUTSIDE_WRITE };

/* The directories of the layout that are no tree. */
enum { LAYOUT_ROOT = WORKSPACE_TREES, LAYOUT_HOMES };

struct path_lookup {
	int tree; /* an enum workspace_tree, or LAYOUT_ROOT or LAYOUT_HOMES, both with dir_fd -1 */
	int dir_fd; /* O_PATH */
	bool is_borrowed;
	char name[NAME_MAX + 1]; /* "": the directory itself (root of a tree, "a/..") */
};

/* The name may not exist; its directory does. */
int path_lookup_find(const struct workspace *ws, const char *path, unsigned flags,
		     struct path_lookup *ret);
void path_lookup_done(struct path_lookup *p);
#define cleanup_path_lookup CLEANUP(path_lookup_done)
#define PATH_LOOKUP_INIT                                                                           \
	{                                                                                          \
		.dir_fd = -1, .is_borrowed = true                                                  \
	}

/* openat2 for a path without links, mounts or ways up beneath dir_fd. */
int path_lookup_open_plain(int dir_fd, const char *rel, int flags, mode_t mode);
/* Opens what is at the place itself, never through a link, never blocking on a FIFO or a lease.
 * Returns the descriptor or -errno. */
int path_lookup_open(const struct path_lookup *p, int flags, mode_t mode);
int path_lookup_stat(const struct path_lookup *p, struct stat *ret);
/* As path_lookup_open(O_RDONLY) for a regular file or directory of the owner, whatever its mode
 * says. */
int path_lookup_open_forced(int dir_fd, const char *name, int flags);
/* Sets the mode of what is at the name, unless it is a link. */
int path_lookup_chmod(int dir_fd, const char *name, mode_t mode);

/* Guest path of a tree: "/home/user", "/tmp", "/workspace". */
const char *path_lookup_tree_path(int tree);
/* Name of a tree in the root: "home", "tmp", "workspace". */
const char *path_lookup_tree_name(int tree);

/* Turns -errno of an operation on path into the error of the API. */
int path_lookup_fail(const struct workspace *ws, const char *path, int r,
		     struct cordon_error **reterr);
/* Enters the owner's ids or fails. */
int path_lookup_enter(const struct workspace *ws, struct owner *o, struct cordon_error **reterr);
/* What is there. If the kernel keeps no quota for us: -ENOSPC if so much more would exceed it. */
int usage_measure(struct workspace *ws, struct workspace_usage *ret);
int usage_charge(struct workspace *ws, uint64_t bytes, uint64_t files);

/* Removes name beneath dir_fd with all that is in it, at any depth, in constant memory. */
int removal_at(const struct workspace *ws, int dir_fd, const char *name);
