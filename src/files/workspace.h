/* files/workspace.h - the files of one session, accessed from the host through one directory
 * descriptor, while the guest runs, is stuck, or is gone.
 *
 * The directory has three trees, `user`, `tmp` and `workspace`, which the guest sees as
 * /home/user, /tmp and /workspace. Paths are guest paths; relative ones start in /home/user.
 * A hostile guest may change anything beneath at any moment. So no lookup lets the kernel follow a
 * link that could leave a tree, no open blocks, and no earlier check is relied on.
 *
 * Errors about paths look like the guest's own: "ENOENT: no such file or directory: '/tmp/x'".
 * Any thread may call these functions. As root, each call uses the owner's file ids. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "cordon/files.h"

enum workspace_tree { WORKSPACE_HOME, WORKSPACE_TMP, WORKSPACE_WORK, WORKSPACE_TREES };

struct workspace;

struct workspace_options {
	int root_fd;     /* directory (O_PATH is enough); duplicated, the caller keeps its own */
	uid_t owner_uid; /* owner of the files; used if the host is root */
	gid_t owner_gid;
	uint64_t max_bytes; /* quota; 0: unknown. Enforced by the tmpfs, or here if there is none */
	uint64_t max_files;
};

/* Creates those of the three trees that are missing. */
int workspace_open(const struct workspace_options *opts, struct workspace **ret,
		   struct cordon_error **reterr);
/* The contents are in the caller's storage: see offload.h. */
bool workspace_is_offloaded(const struct workspace *ws);
/* Accepts NULL; always returns NULL. The files stay. */
struct workspace *workspace_close(struct workspace *ws);
/* Takes a reference; any thread may call it. Each reference must be closed. Accepts NULL. */
struct workspace *workspace_ref(struct workspace *ws);

/* Marks a guest path inside the trees as a mount, which exports leave out. read_only: writes
 * through this API are refused as "EROFS: read-only mount". Refuses a path that overlaps another
 * mount. */
int workspace_add_mount(struct workspace *ws, const char *path, bool read_only,
			struct cordon_error **reterr);

struct workspace_usage {
	uint64_t bytes, files;         /* in use */
	uint64_t max_bytes, max_files; /* 0: no known limit */
};
int workspace_get_usage(struct workspace *ws, struct workspace_usage *ret,
			struct cordon_error **reterr);

/* max_bytes 0: the quota, or 1 GiB. *ret has a NUL after *ret_len bytes; the caller frees it. */
int workspace_read(struct workspace *ws, const char *path, size_t max_bytes, char **ret,
		   size_t *ret_len, struct cordon_error **reterr);
int workspace_read_at(struct workspace *ws, const char *path, uint64_t offset, void *bytes,
		      size_t len, size_t *ret_len, struct cordon_error **reterr);
/* Replaces the file atomically, creates parents, keeps the mode (new: 0644), follows links. On
 * failure the old content is intact. */
int workspace_write(struct workspace *ws, const char *path, const void *bytes, size_t len,
		    struct cordon_error **reterr);
/* All or nothing. Creates the file, but not its parents. */
int workspace_append(struct workspace *ws, const char *path, const void *bytes, size_t len,
		     struct cordon_error **reterr);
/* Does not follow a final link. */
int workspace_stat(struct workspace *ws, const char *path, struct cordon_file_info *ret,
		   struct cordon_error **reterr);
int workspace_readlink(struct workspace *ws, const char *path, char **ret,
		       struct cordon_error **reterr);
/* Sorted by name. If fn returns other than 0, that ends the list and is returned. */
int workspace_list(struct workspace *ws, const char *path, cordon_file_list_fn fn, void *arg,
		   struct cordon_error **reterr);
int workspace_mkdir(struct workspace *ws, const char *path, bool parents,
		    struct cordon_error **reterr);
int workspace_symlink(struct workspace *ws, const char *target, const char *path,
		      struct cordon_error **reterr);
int workspace_chmod(struct workspace *ws, const char *path, uint32_t mode,
		    struct cordon_error **reterr);
/* rename(2): replaces a file, or an empty directory by a directory. */
int workspace_move(struct workspace *ws, const char *from, const char *to,
		   struct cordon_error **reterr);
/* A directory with contents only if recursive. Then modes inside it do not prevent removal. */
int workspace_remove(struct workspace *ws, const char *path, bool recursive,
		     struct cordon_error **reterr);

DEFINE_FREEP(struct workspace *, workspace_close)
#define cleanup_workspace CLEANUP(workspace_closep)
