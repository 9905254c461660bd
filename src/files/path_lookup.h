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
	int stage_fd; /* borrowed: the directory for staged files; the root, which the guest cannot
			 see */
	struct workspace_options opts;
	bool is_tmpfs;
	_Atomic bool is_offloaded;       /* the contents are in the caller's storage */
	struct strlist mounts;           /* guest paths */
	struct strlist read_only_mounts; /* the ones that refuse writes */

	pthread_mutex_t lock; /* guards the estimate below, which is used only if no tmpfs enforces
				 the quota */
	struct workspace_usage estimate;
	uint64_t estimate_ns;
};

/* Prefix of files in stage_fd that are being made or removed. */
#define STAGE_PREFIX ".cordon-"
enum { STAGE_NAME_SIZE = 32 };
void path_lookup_stage_name(char ret[static STAGE_NAME_SIZE]);
bool path_lookup_is_stage_name(const char *name);

enum path_lookup_flags {
	PATH_LOOKUP_FOLLOW = 1 << 0,  /* follow a link at the end */
	PATH_LOOKUP_PARENTS = 1 << 1, /* create missing directories on the way */
	PATH_LOOKUP_WRITE = 1 << 2,   /* a path outside the trees is EROFS, not ENOENT */
};

/* Besides the kernel's errnos: the path is in a mount that refuses writes, or outside the
 * workspace's trees. The code may still see a file there. */
enum { PATH_LOOKUP_READ_ONLY_MOUNT = 4000, PATH_LOOKUP_OUTSIDE, PATH_LOOKUP_OUTSIDE_WRITE };

/* Directories above the trees. */
enum { LAYOUT_ROOT = WORKSPACE_TREES, LAYOUT_HOMES };

struct path_lookup {
	int tree;   /* enum workspace_tree; or LAYOUT_ROOT or LAYOUT_HOMES, with dir_fd -1 */
	int dir_fd; /* O_PATH */
	bool is_borrowed;
	char name[NAME_MAX + 1]; /* "": the directory itself (a tree's root, "a/..") */
};

/* The name need not exist; its directory does. */
int path_lookup_find(const struct workspace *ws, const char *path, unsigned flags,
		     struct path_lookup *ret);
void path_lookup_done(struct path_lookup *p);
#define cleanup_path_lookup CLEANUP(path_lookup_done)
#define PATH_LOOKUP_INIT                                                                           \
	{                                                                                          \
		.dir_fd = -1, .is_borrowed = true                                                  \
	}

/* openat2 beneath dir_fd, without links, mount points or "..". */
int path_lookup_open_plain(int dir_fd, const char *rel, int flags, mode_t mode);
/* Opens exactly what is there: never follows a link, never blocks on a FIFO or a lease. Returns the
 * descriptor or -errno. */
int path_lookup_open(const struct path_lookup *p, int flags, mode_t mode);
int path_lookup_stat(const struct path_lookup *p, struct stat *ret);
/* Like path_lookup_open(O_RDONLY) for the owner's regular file or directory, whatever its mode. */
int path_lookup_open_forced(int dir_fd, const char *name, int flags);
/* Sets the mode of the entry, unless it is a link. */
int path_lookup_chmod(int dir_fd, const char *name, mode_t mode);

/* Guest path of a tree: "/home/user", "/tmp", "/workspace". */
const char *path_lookup_tree_path(int tree);
/* Name of a tree in the root: "home", "tmp", "workspace". */
const char *path_lookup_tree_name(int tree);

/* Turns -errno of an operation on path into the error of the API. */
int path_lookup_fail(const struct workspace *ws, const char *path, int r,
		     struct cordon_error **reterr);
/* Enters the owner's ids. -CORDON_STATE: the workspace is offloaded. */
int path_lookup_enter(const struct workspace *ws, struct owner *o, struct cordon_error **reterr);
/* The same of any workspace, for who brings its contents back. */
int path_lookup_enter_any(const struct workspace *ws, struct owner *o,
			  struct cordon_error **reterr);
/* Measures the workspace. usage_charge: if the kernel enforces no quota, -ENOSPC if this much more
 * would exceed it. */
int usage_measure(struct workspace *ws, struct workspace_usage *ret);
int usage_charge(struct workspace *ws, uint64_t bytes, uint64_t files);

/* Removes name beneath dir_fd with all its contents, at any depth, in constant memory. */
int removal_at(const struct workspace *ws, int dir_fd, const char *name);
