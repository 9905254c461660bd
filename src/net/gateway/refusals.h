/* net/gateway/refusals.h - connections that the kernel refused inside the guest's namespace,
 * because nothing listens there: a port that no rule allows, or the guest's own loopback. */
#pragma once

#include "net/gateway/hub.h"

/* At the end of an execution: a denial for each. */
void refusals_tell(struct hub *hub);
/* At its beginning: forgets those from before. */
void refusals_drop(struct hub *hub);
