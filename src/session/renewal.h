/* session/renewal.h - a session's guest, replaced by a new one that finds the old one's files. */
#pragma once

#include "session/session.h"

/* After an execution that ended its guest. The result says so, and also when not all files could be
 * kept: what the code left may be such that it cannot be copied. Where there is no new guest, there
 * is no result either. */
int renewal_after(struct cordon_session *s, struct cordon_result **result,
		  struct cordon_error **reterr);
/* A guest, where the last one could not be replaced. */
int renewal_start(struct cordon_session *s, struct cordon_error **reterr);
