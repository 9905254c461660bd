/* session/startup.h - a guest, its gateway and its workspace, started together for a session. All
 * of it is there before the session has any of it, so that a start that fails takes nothing. */
#pragma once

#include "session/session.h"

struct startup {
	struct engine *engine;
	struct network *network; /* NULL: the policy opens nothing */
	struct workspace *workspace;
};

/* from: the workspace whose files the new one gets, with ret_lost as in snapshot.h; NULL: it has
 * those of the mounts. A template
 * that is lost meanwhile is retired, and another one asked once. The caller holds the session. */
int startup_make(struct cordon_session *s, struct workspace *from, struct startup *ret,
		 char **ret_lost, struct cordon_error **reterr);
void startup_done(struct startup *u);
/* The session's from now on; it has none of the three. The caller holds the session, and
 * files_lock where others may know the session already. */
void startup_install(struct startup *u, struct cordon_session *s);
