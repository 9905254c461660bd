/* cli/typescript.h - TypeScript for the node guest: Node itself takes the types out, in a sandbox
 * of its own. */
#pragma once

#include <cordon/cordon.h>

#include "base/buf.h"

/* Puts JavaScript in the place of the TypeScript. Broken code is an error that says what Node says;
 * a Node that cannot do it, before 22.13, is one too. */
int typescript_strip(const struct cordon_policy *policy, struct buf *code,
		     struct cordon_error **reterr);
