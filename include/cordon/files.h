/* cordon/files.h - a session's workspace, accessed from the host. Paths are guest paths
 * ("/home/user/a.csv"); relative ones start in /home/user. No path leads outside the workspace.
 *
 * Threads: the file functions may be called from any thread at any time. session.h lists what holds
 * the session. Callbacks (list, save, load) run in the thread that calls; they must not call the
 * session. A project belongs to one thread at a time, and so does the descriptor of an export. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cordon/error.h>
#include <cordon/session.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

enum cordon_file_type { CORDON_FILE, CORDON_DIRECTORY, CORDON_SYMLINK, CORDON_OTHER };
struct cordon_file_info {
	enum cordon_file_type type;
	uint64_t size;
	uint32_t mode;
	int64_t mtime_ns;
};
typedef int (*cordon_file_list_fn)(const char *name, const struct cordon_file_info *info,
				   void *arg);

int cordon_file_read(struct cordon_session *s, const char *path, char **ret, size_t *ret_len,
		     struct cordon_error **reterr);
int cordon_file_read_at(struct cordon_session *s, const char *path, uint64_t offset, void *bytes,
			size_t len, size_t *ret_len, struct cordon_error **reterr);
int cordon_file_write(struct cordon_session *s, const char *path, const void *bytes, size_t len,
		      struct cordon_error **reterr); /* atomic replace; makes parents */
int cordon_file_append(struct cordon_session *s, const char *path, const void *bytes, size_t len,
		       struct cordon_error **reterr);
int cordon_file_stat(struct cordon_session *s, const char *path, struct cordon_file_info *ret,
		     struct cordon_error **reterr); /* does not follow a final link */
int cordon_file_list(struct cordon_session *s, const char *path, cordon_file_list_fn fn, void *arg,
		     struct cordon_error **reterr);
int cordon_file_mkdir(struct cordon_session *s, const char *path, bool parents,
		      struct cordon_error **reterr);
int cordon_file_move(struct cordon_session *s, const char *from, const char *to,
		     struct cordon_error **reterr);
int cordon_file_remove(struct cordon_session *s, const char *path, bool recursive,
		       struct cordon_error **reterr);
/* Watches a directory, and with recursive also those below it. *ret is the number of the watch in
 * this session; it has at most 16, each with at most 1024 directories. */
int cordon_watch_open(struct cordon_session *s, const char *path, bool recursive, uint64_t *ret,
		      struct cordon_error **reterr);
/* What has changed since the last call, or the opening; waits for it, for at most so long. One call
 * for a watch at a time. JSON, to be freed: an array of {"path", "change": created, modified or
 * removed, "type": file or directory}, empty if nothing has changed, with at most 1000 entries. A
 * move is removed and created. A file that was replaced as a whole, as cordon_file_write does, is
 * created. "lost" instead means that there was too much to tell, or that the session was restarted:
 * list the directory. CORDON_NOT_FOUND: there is no such watch, or the directory is gone. */
int cordon_watch_wait(struct cordon_session *s, uint64_t watch, uint64_t wait_ms, char **ret_json,
		      struct cordon_error **reterr);
/* Also while another thread waits: its call ends. */
int cordon_watch_close(struct cordon_session *s, uint64_t watch, struct cordon_error **reterr);
/* Whole directories as tar streams. Devices, FIFOs, sockets, and entries that lead out of the
 * directory are left out. ret_report_json, which may be NULL: JSON, to be freed. {"skipped_count",
 * "skipped": [{"path", "reason"}]} has at most 1000 of them; that of put_tar also has "files",
 * "directories", "links" and "bytes". */
int cordon_file_put_tar(struct cordon_session *s, const char *path, int tar_fd,
			char **ret_report_json, struct cordon_error **reterr);
int cordon_file_get_tar(struct cordon_session *s, const char *path, int tar_fd,
			char **ret_report_json, struct cordon_error **reterr);

/* Named snapshots of the workspace, the environment and the working directory; each can be restored
 * repeatedly. */
int cordon_snapshot_create(struct cordon_session *s, const char *name,
			   struct cordon_error **reterr);
int cordon_snapshot_restore(struct cordon_session *s, const char *name,
			    struct cordon_error **reterr);
int cordon_snapshot_remove(struct cordon_session *s, const char *name,
			   struct cordon_error **reterr);
char *cordon_snapshot_list(struct cordon_session *s); /* JSON array; the caller frees it */
/* An independent session with the same files, policy, tools, mounts and limits. */
int cordon_session_fork(struct cordon_session *s, struct cordon_session **ret,
			struct cordon_error **reterr);
/* One file: tar inside zstd with a header and SHA-256. report_json: what was skipped and why. */
int cordon_files_export(struct cordon_session *s, int fd, struct cordon_error **reterr);
int cordon_files_import(struct cordon_session *s, int fd, char **ret_report_json,
			struct cordon_error **reterr);

/* Offload passes files, environment and working directory to the caller's storage, under the
 * session's id, and empties the workspace. Until they are rehydrated, nothing can execute and there
 * are no files. If save fails (a negative code), nothing changes. A second offload does nothing.
 * The bytes are an export, valid only during the call. What load returns is freed with free(). */
typedef int (*cordon_storage_save_fn)(const char *id, const void *bytes, size_t len, void *arg);
typedef int (*cordon_storage_load_fn)(const char *id, void **ret, size_t *ret_len, void *arg);
int cordon_session_offload(struct cordon_session *s, cordon_storage_save_fn save, void *arg,
			   struct cordon_error **reterr);
int cordon_session_rehydrate(struct cordon_session *s, cordon_storage_load_fn load, void *arg,
			     struct cordon_error **reterr);

/* A project: a copy of a host directory in /workspace. Shows what the code changed, and writes it
 * back. */
struct cordon_project;
int cordon_project_open(struct cordon_session *s, const char *host_dir, struct cordon_project **ret,
			struct cordon_error **reterr);
struct cordon_project *cordon_project_close(struct cordon_project *p); /* before the session */
/* JSON {"added", "modified", "deleted", "changes": [{"path", "change", "diff", ...}]}, to be freed.
 */
int cordon_project_diff(struct cordon_project *p, char **ret_json, struct cordon_error **reterr);
/* Writes the changes back, each file in one step; paths NULL: all. Refuses files that also changed
 * on the host. JSON {"applied": [...], "refused": [{"path", "reason"}]}, to be freed. */
int cordon_project_apply(struct cordon_project *p, const char *const *paths, size_t count,
			 char **ret_json, struct cordon_error **reterr);

/* Saved workspaces and exports, without a session. A saved workspace has the name that sessions
 * were opened with. A name with a slash in it, or one that ends in .cws, is the path of an
 * export. */
/* JSON array of {"name", "bytes", "saved"}, to be freed. */
int cordon_saved_list(char **ret_json, struct cordon_error **reterr);
int cordon_saved_open(const char *name, int *ret_fd, struct cordon_error **reterr);
/* Checks an export as cordon_files_import does, and saves it under the name. */
int cordon_saved_import(const char *name, int fd, char **ret_report_json,
			struct cordon_error **reterr);
int cordon_saved_remove(const char *name, struct cordon_error **reterr);

/* One entry of an export; link: the target of a link, or NULL. A return value other than 0 ends the
 * list and is passed on. */
typedef int (*cordon_export_fn)(const char *path, const struct cordon_file_info *info,
				const char *link, void *arg);
int cordon_export_list(int fd, cordon_export_fn fn, void *arg, struct cordon_error **reterr);
/* Writes the content of one file to out_fd. */
int cordon_export_read(int fd, const char *path, int out_fd, struct cordon_error **reterr);
/* JSON array of {"path", "change": added, modified, deleted, type or mode, "old_size", "size", and
 * for texts of at most 256 KiB "lines_added", "lines_removed", "diff"}, to be freed. */
int cordon_export_diff(int old_fd, int new_fd, char **ret_json, struct cordon_error **reterr);
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
