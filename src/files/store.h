/* files/store.h - persistent workspaces by name, one file each in the user's data directory. A save
 * replaces the file in one step, so the last good state always exists. A process that opens a name
 * locks it; others get an error that names the process. */
#pragma once

#include "base/error.h"
#include "files/workspace.h"

struct store;

/* dir NULL: ${XDG_DATA_HOME:-~/.local/share}/cordon/workspaces. Any name will do: what does not fit
 * a file name is replaced and a hash added. CORDON_EXISTS "held by process N". */
int store_open(const char *dir, const char *name, struct store **ret, struct cordon_error **reterr);
/* Accepts NULL; always returns NULL. Lets go of the name. */
struct store *store_close(struct store *s);

/* The file of the workspace, whether it exists or not. */
const char *store_path(const struct store *s);
/* CORDON_NOT_FOUND when nothing was saved yet. ret_state as in export_read. */
int store_load(struct store *s, struct workspace *ws, char **ret_state,
	       struct cordon_error **reterr);
int store_save(struct store *s, struct workspace *ws, const char *state,
	       struct cordon_error **reterr);
/* Forgets what was saved. Nothing there is no error. */
int store_clear(struct store *s, struct cordon_error **reterr);

/* The path that a name has, without opening it; to be freed. */
int store_find(const char *dir, const char *name, char **ret_path, struct cordon_error **reterr);
/* JSON array of {"name", "bytes", "saved"}, to be freed. */
int store_list(const char *dir, char **ret_json, struct cordon_error **reterr);

DEFINE_FREEP(struct store *, store_close)
#define cleanup_store CLEANUP(store_closep)
