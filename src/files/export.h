/* files/export.h - a whole workspace as one file, and back. docs/workspace.md has the format. */
#pragma once

#include "files/unpack.h"
#include "files/workspace.h"

/* state: JSON of the environment and working directory to store as well, or NULL. */
int export_write(struct workspace *ws, const char *state, int fd, struct cordon_error **reterr);

/* Merges an export into the workspace. Changes nothing unless the whole file is valid and small
 * enough; then skips and reports single bad entries. is_rehydration: of an offloaded workspace,
 * which nobody else uses meanwhile. ret_report_json and ret_state may be NULL; *ret_state is NULL
 * if the export has no state. */
int export_read(struct workspace *ws, int fd, bool is_rehydration, char **ret_report_json,
		char **ret_state, struct cordon_error **reterr);

/* Lists the entries without a workspace. */
int export_each(int fd, unpack_entry_fn fn, void *arg, struct cordon_error **reterr);
