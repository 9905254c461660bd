/* session/startup.h - starts a guest, its gateway and its workspace together. The session gets them
 * only when all three are ready, so a failed start changes nothing. */
#pragma once

#include "session/session.h"

struct startup {
	struct engine *engine;
	struct network *network; /* NULL: the policy opens no network */
	struct workspace *workspace;
};

/* from: a workspace whose files are copied into the new one (ret_lost: see snapshot.h). NULL: only
 * files of the mounts. If the template dies meanwhile, it is retired and another one is tried,
 * once. The caller holds the session. */
int startup_make(struct cordon_session *s, struct workspace *from, struct startup *ret,
		 char **ret_lost, struct cordon_error **reterr);
/* Starts the first guest of a session that nobody else knows yet. */
int startup_first(struct cordon_session *s, struct cordon_error **reterr);
/* Of a session with several languages, or one of its contexts: starts a guest in the place. If
 * there is no place any more, makes one with the same files first. command: bash runs this and
 * ends; NULL: a guest that accepts executions. The caller holds the session, which must have no
 * engine. */
int startup_join(struct cordon_session *s, const char *command, char **ret_lost,
		 struct cordon_error **reterr);
/* Gives the three to the session, which must have none of them. The caller holds the session, and
 * files_lock too if other threads already know the session. */
void startup_install(struct startup *u, struct cordon_session *s);
