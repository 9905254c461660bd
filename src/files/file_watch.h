/* files/file_watch.h - what changes in a directory of a workspace, and below it if that is wanted.
 * It holds no reference to the workspace, which may be replaced; the caller then makes a new one.
 * One thread at a time. */
#pragma once

#include "base/json.h"
#include "files/workspace.h"

/* Directories that one watch has, and changes that one answer tells. If there are more, the answer
 * says that changes were lost. */
enum { FILE_WATCH_DIRECTORIES = 1024, FILE_WATCH_CHANGES = 1000 };

struct file_watch;
int file_watch_new(struct workspace *ws, const char *path, bool is_recursive,
		   struct file_watch **ret, struct cordon_error **reterr);
/* Accepts NULL; always returns NULL. */
struct file_watch *file_watch_free(struct file_watch *w);
/* Adds what has changed to the array, and waits for that if nothing has. Objects of path, change
 * (created, modified, removed, lost) and type (file, directory). */
int file_watch_read(struct file_watch *w, struct workspace *ws, int timeout_ms, json_t *changes,
		    struct cordon_error **reterr);
/* The entry that tells that changes were lost. */
void file_watch_add_loss(const struct file_watch *w, json_t *changes);
/* The directory was removed or moved away, or its workspace is gone. */
bool file_watch_is_over(const struct file_watch *w);
