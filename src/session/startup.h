/* session/startup.h - starts a guest, its gateway and its workspace together for a session. The
 * session gets them only when all three are there, so a failed start changes nothing. */
#pragma once

#include "session/session.h"

struct startup {
	struct engine *engine;
	struct network *network; /* NULL: the policy opens nothing */
	struct workspace *workspace;
};

/* from: the workspace whose files the new one gets, with ret_lost as in snapshot.h; NULL: only
 * those of the mounts. If the template dies meanwhile, it is retired and another one is tried,
 * once. The caller holds the session. */
int startup_make(struct cordon_session *s, struct workspace *from, struct startup *ret,
		 char **ret_lost, struct cordon_error **reterr);
void startup_done(struct startup *u);
/* Gives the three to the session, which must have none of them. The caller holds the session, and
 * files_lock if other threads may know the session already. */
void startup_install(struct startup *u, struct cordon_session *s);
