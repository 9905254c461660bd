/* cli/typescript.h - TypeScript for the node guest: Node itself takes the types out, in a sandbox
 * of its own. */
#pragma once

#include <cordon/cordon.h>

#include "base/buf.h"

/* Replaces TypeScript by JavaScript. Errors: broken code, with Node's message, and a Node before
 * 22.13, which cannot do it. */
int typescript_strip(const struct cordon_policy *policy, struct buf *code,
		     struct cordon_error **reterr);
