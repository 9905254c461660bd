/* files/store.h - persistent workspaces by name, one file each in the user's data directory. A save
 * replaces the file in one step, so the last good state always exists. A process that opens a name
 * locks it; others get an error that names the process. */
#pragma once

#include "base/error.h"
#include "files/workspace.h"

struct store;

/* dir NULL: ${XDG_DATA_HOME:-~/.local/share}/cordon/workspaces. Any name is allowed: characters
 * that do not fit a file name are replaced, and a hash is added. CORDON_EXISTS: "held by process
 * N". */
int store_open(const char *dir, const char *name, struct store **ret, struct cordon_error **reterr);
/* Releases the name. Accepts NULL; always returns NULL. */
struct store *store_close(struct store *s);

/* The file of the workspace, whether it exists or not. */
const char *store_path(const struct store *s);
/* CORDON_NOT_FOUND: nothing was saved yet. ret_state: see export_read. */
int store_load(struct store *s, struct workspace *ws, char **ret_state,
	       struct cordon_error **reterr);
int store_save(struct store *s, struct workspace *ws, const char *state,
	       struct cordon_error **reterr);
/* Deletes what was saved. No error if there was nothing. */
int store_clear(struct store *s, struct cordon_error **reterr);

/* The path of a name, without opening it; the caller frees it. */
int store_find(const char *dir, const char *name, char **ret_path, struct cordon_error **reterr);
/* JSON array of {"name", "bytes", "saved"}; the caller frees it. */
int store_list(const char *dir, char **ret_json, struct cordon_error **reterr);

DEFINE_FREEP(struct store *, store_close)
#define cleanup_store CLEANUP(store_closep)
