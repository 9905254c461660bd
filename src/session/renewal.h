/* session/renewal.h - a session's guest, replaced by a new one that finds the old one's files. The
 * caller holds the session. */
#pragma once

#include "session/session.h"

/* After an execution that ended its guest. The result says so, and also when not all files could be
 * kept: what the code left may be such that it cannot be copied. Where there is no new guest, the
 * result says that too; the files are kept, and renewal_start tries again. */
void renewal_after(struct cordon_session *s, struct cordon_result *result);
/* A guest, where the last one could not be replaced. *ret_lost, to be freed: files that could not
 * be kept, for renewal_tell. */
int renewal_start(struct cordon_session *s, char **ret_lost, struct cordon_error **reterr);
void renewal_tell(struct cordon_result *result, const char *lost);
