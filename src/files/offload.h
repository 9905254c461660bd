/* files/offload.h - moves a workspace's contents to the caller's storage, and back. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "files/workspace.h"

/* Stores the bytes under the id, or fails. The bytes are valid only during the call. */
typedef int (*offload_save_fn)(const char *id, const void *bytes, size_t len, void *arg,
			       struct cordon_error **reterr);
/* Returns the bytes; the caller of this function frees *ret. */
typedef int (*offload_load_fn)(const char *id, void **ret, size_t *ret_len, void *arg,
			       struct cordon_error **reterr);

/* Afterwards the workspace is empty, and every call on it except offload_load fails with
 * CORDON_STATE ("offloaded"). If saving fails, nothing changes. A second offload does nothing. */
int offload_save(struct workspace *ws, const char *id, const char *state, offload_save_fn save,
		 void *arg, struct cordon_error **reterr);
/* ret_state: see export_read; also NULL if there was nothing to do. A second load does nothing. */
int offload_load(struct workspace *ws, const char *id, offload_load_fn load, void *arg,
		 char **ret_state, struct cordon_error **reterr);
