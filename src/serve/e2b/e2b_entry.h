/* serve/e2b/e2b_entry.h - files of a sandbox as envd describes them. */
#pragma once

#include "base/json.h"
#include "serve/e2b/e2b_sandbox.h"

/* The guest's path: "~" and relative ones begin in /home/user; "." and doubled slashes are left
 * out, ".." goes up. The caller frees it. NULL: out of memory. */
char *e2b_entry_path(const char *path);
const char *e2b_entry_name(const char *path);

/* EntryInfo of what is at this full path, a final link not followed. */
int e2b_entry_describe(struct cordon_session *s, const char *path, json_t **ret,
		       struct cordon_error **reterr);
/* As the answer of an upload: name, type, path, metadata. */
int e2b_entry_written(struct cordon_session *s, const char *path, json_t **ret,
		      struct cordon_error **reterr);
/* Replaces the metadata of a file, its extended attributes user.e2b.NAME; NULL: removes them. */
int e2b_entry_set_metadata(struct cordon_session *s, const char *path, const json_t *metadata,
			   struct cordon_error **reterr);
