/* session/renewal.h - replaces a session's guest by a new one with the same files. The caller holds
 * the session. */
#pragma once

#include "session/session.h"

/* Called after an execution that ended its guest. The result says `restarted` and lists files that
 * could not be copied. If no new guest starts, the result says so; the files are kept, and
 * renewal_start tries again. */
void renewal_after(struct cordon_session *s, struct cordon_result *result);
/* Starts a guest if the last one could not be replaced. *ret_lost lists files that could not be
 * kept, for renewal_tell; the caller frees it. */
int renewal_start(struct cordon_session *s, char **ret_lost, struct cordon_error **reterr);
void renewal_tell(struct cordon_result *result, const char *lost);
