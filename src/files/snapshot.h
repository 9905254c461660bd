/* files/snapshot.h - named snapshots of a session's files, with its environment and working
 * directory. They can be restored repeatedly and share unchanged contents. Any thread may call
 * these functions. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "files/workspace.h"

struct snapshots;

struct snapshots_options {
	uint32_t max_count; /* 0: 64 */
	uint64_t max_bytes; /* total size of contents, shared ones counted once; 0: 1 GiB */
};

int snapshots_new(const struct snapshots_options *opts, struct snapshots **ret,
		  struct cordon_error **reterr);
/* Accepts NULL; always returns NULL. */
struct snapshots *snapshots_free(struct snapshots *s);

/* name NULL: the next free number. An existing snapshot of that name is replaced only when the new
 * one is complete. state: JSON of environment and working directory, returned by restore; may be
 * NULL. The caller frees *ret_name (ret_name may be NULL). */
int snapshots_create(struct snapshots *s, struct workspace *ws, const char *name, const char *state,
		     char **ret_name, struct cordon_error **reterr);
/* Makes the workspace equal to the snapshot, which is kept. The caller frees *ret_state (ret_state
 * may be NULL); it is NULL if none was stored. */
int snapshots_restore(struct snapshots *s, struct workspace *ws, const char *name, char **ret_state,
		      struct cordon_error **reterr);
int snapshots_remove(struct snapshots *s, const char *name, struct cordon_error **reterr);
/* JSON array of {"name", "created", "files", "bytes", "own_bytes"}, oldest first; the caller frees
 * it. NULL: out of memory. */
char *snapshots_list(struct snapshots *s);

/* Makes `to` equal to `from`. They are independent afterwards. */
int snapshot_fork(struct workspace *from, struct workspace *to, struct cordon_error **reterr);
/* The same, but copies what it can. *ret_lost says what could not be copied, freed by the caller;
 * NULL: nothing was lost. */
int snapshot_carry(struct workspace *from, struct workspace *to, char **ret_lost,
		   struct cordon_error **reterr);

DEFINE_FREEP(struct snapshots *, snapshots_free)
#define cleanup_snapshots CLEANUP(snapshots_freep)
