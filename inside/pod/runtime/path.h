/* inside/pod/runtime/path.h - resolves the guest's file names: in the sandbox's root, or beneath a
 * directory if there is no sandbox. */
#pragma once

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "inside/pod/runtime/process.h"

/* A name, ready for an *at() system call. */
struct place {
	int dirfd;
	const char *path;
	int owned;     /* to close, or -1 */
	bool followed; /* path is a link in /proc to the file itself */
	char buf[PATH_MAX];
};

enum path_last {
	PATH_FOLLOW,
	PATH_NOFOLLOW
}; /* what to do with a symbolic link as the last component */

/* Resolves the guest's string at `at` relative to its descriptor; 0 or a negative errno. */
int path_place(const struct w2c_sys *p, uint64_t dirfd, uint64_t at, enum path_last last,
	       struct place *ret);
void path_done(struct place *place);

/* Flags for an *at() call: a link that stands for the file itself must be followed. */
static inline int path_flags(const struct place *place, int flags)
{
	return place->followed ? flags & ~AT_SYMLINK_NOFOLLOW : flags;
}

/* Opens a file for the guest: a descriptor below its limit, never one that leads back into this
 * process. */
int64_t path_open(struct w2c_sys *p, uint64_t dirfd, uint64_t at, int flags, int mode);
/* Opens a name of ours for a guest that may not leave a directory it has: -EXDEV if the name leads
 * out, by dots or by links. */
int64_t path_open_beneath(struct w2c_sys *p, int dirfd, const char *path, int flags, int mode);
/* Opens a name of our own (not from guest memory) for execution: O_PATH. */
int path_open_program(const struct w2c_sys *p, const char *path);
/* Opens a name of our own for reading; negative errno. */
int path_open_read(const struct w2c_sys *p, const char *path);
/* Whether the mode allows this process to execute a file. The kernel is not asked: the workspace is
 * mounted noexec, but exec never starts the file itself here. */
bool path_may_run(const struct stat *st);
/* The current directory as the guest sees it; its length or a negative errno. */
int path_cwd(const struct w2c_sys *p, char buf[PATH_MAX]);

/* Finds out which device /proc is now: its files give access to processes. */
void path_find_proc(struct w2c_sys *p);
