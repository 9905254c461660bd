/* serve/server/parking.h - sessions that nobody uses are parked: their files, environment and
 * working directory go to a file, and everything else ends. The next request brings them back, also
 * after a restart of the server. */
#pragma once

#include "serve/server/database.h"
#include "serve/server/tenant.h"

/* What a request whose session came back is told. */
#define PARKING_NOTICE                                                                             \
	"the session was parked while nobody used it: files, environment and working directory "   \
	"are there; variables, processes and snapshots are gone"

/* Makes the folder, and removes what an earlier run has not finished, or is older than keep_s
 * seconds. */
int parking_init(struct database *db, uint64_t keep_s, struct cordon_error **reterr);
/* Removes what was parked keep_s seconds ago or earlier, or by a key that is gone. drop: takes the
 * session from the tenant that has it; false: it is coming back just now. */
int parking_expire(struct database *db, uint64_t keep_s, bool (*drop)(const char *id, void *arg),
		   void *arg, struct cordon_error **reterr);
/* The storage of a tenant; arg of its functions is the tenant. */
struct rpc_storage parking_storage(struct tenant *t);
/* The tenant's parked sessions of an earlier run. */
int parking_restore(struct tenant *t, struct cordon_error **reterr);
/* Parks the sessions that were not used since then and run nothing. */
void parking_sweep(struct tenant *t, uint64_t before_ns);
/* The server ends: ends what still runs (rpc_cancel comes first), parks all sessions, and says
 * which are lost. is_ending of the tenant is set. */
void parking_end(struct tenant *t);
/* Brings a session back if it is parked; waits if it is being parked. *ret_restored: it was. */
int parking_wake(struct tenant *t, const char *session, bool *ret_restored,
		 struct cordon_error **reterr);
/* Whether it came back since the last call. */
bool parking_take_notice(struct tenant *t, const char *session);
/* Removes all that a tenant has parked: its key is gone. */
int parking_forget_tenant(struct database *db, const char *tenant);
