/* serve/typescript.h - TypeScript for the node guest: Node itself strips the types, in a sandbox.
 */
#pragma once

#include <cordon/cordon.h>

#include "base/buf.h"

/* Replaces TypeScript by JavaScript. Fails for invalid code, with Node's message, and with a Node
 * before 22.13, which cannot strip types. */
int typescript_strip(const struct cordon_policy *policy, struct buf *code,
		     struct cordon_error **reterr);
