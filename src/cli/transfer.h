/* cli/transfer.h - copies files into and out of a session, and saves rich outputs. */
#pragma once

#include <cordon/cordon.h>

#include "cli/option.h"

/* Copies each --file HOST:GUEST. 0 or a negative code. */
int transfer_in(const struct cli *c, struct cordon_session *s, struct cordon_error **reterr);
/* Copies each --out GUEST:HOST. */
int transfer_out(const struct cli *c, struct cordon_session *s, struct cordon_error **reterr);
/* Saves the result's outputs as files in dir (created if missing); prints one line on stderr for
 * each. */
int transfer_outputs(const struct cli *c, struct cordon_result *r, const char *dir,
		     struct cordon_error **reterr);
