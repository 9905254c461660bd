/* cli/transfer.h - files into and out of a session, and rich outputs into a folder. */
#pragma once

#include <cordon/cordon.h>

#include "cli/option.h"

/* Every --file HOST:GUEST. 0 or a negative code. */
int transfer_in(const struct cli *c, struct cordon_session *s, struct cordon_error **reterr);
/* Every --out GUEST:HOST. */
int transfer_out(const struct cli *c, struct cordon_session *s, struct cordon_error **reterr);
/* The result's outputs as files in dir (made when missing), one line on stderr each. */
int transfer_outputs(const struct cli *c, struct cordon_result *r, const char *dir,
		     struct cordon_error **reterr);
