/* files/snapshot.h - named snapshots of a session's files, with its environment and working
 * directory. They can be restored often and share unchanged contents. Safe from any thread. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "files/workspace.h"

struct snapshots;

struct snapshots_options {
	uint32_t max_count; /* 0: 64 */
	uint64_t max_bytes; /* contents held in all, shared ones once; 0: 1 GiB */
};

int snapshots_new(const struct snapshots_options *opts, struct snapshots **ret,
		  struct cordon_error **reterr);
/* Accepts NULL; always returns NULL. */
struct snapshots *snapshots_free(struct snapshots *s);

/* name NULL: the next free number. A snapshot of the same name is replaced only when the new one is
 * complete. state: what the session wants back at restore (JSON of environment and working
 * directory); may be NULL. ret_name (may be NULL) is to be freed. */
int snapshots_create(struct snapshots *s, struct workspace *ws, const char *name, const char *state,
		     char **ret_name, struct cordon_error **reterr);
/* Makes the workspace equal to the snapshot; it stays and can be restored again.
 * ret_state (may be NULL) is to be freed; NULL when none was given. */
int snapshots_restore(struct snapshots *s, struct workspace *ws, const char *name, char **ret_state,
		      struct cordon_error **reterr);
int snapshots_remove(struct snapshots *s, const char *name, struct cordon_error **reterr);
/* JSON array of {"name", "created", "files", "bytes", "own_bytes"}, oldest first, to be freed;
 * NULL: out of memory. */
char *snapshots_list(struct snapshots *s);

/* Makes `to` equal to `from`; both are independent afterwards. */
int snapshot_fork(struct workspace *from, struct workspace *to, struct cordon_error **reterr);
/* The same with all that can be copied. *ret_lost, to be freed: what could not, named; NULL:
 * nothing. */
int snapshot_carry(struct workspace *from, struct workspace *to, char **ret_lost,
		   struct cordon_error **reterr);

DEFINE_FREEP(struct snapshots *, snapshots_free)
#define cleanup_snapshots CLEANUP(snapshots_freep)
