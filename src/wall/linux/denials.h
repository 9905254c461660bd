/* wall/linux/denials.h - turns the refusals on the status page into denials. */
#pragma once

#include "wall/wall.h"

void denials_count(const struct box *box, uint32_t ret[static BOX_DENIAL_COUNTS]);
json_t *denials_list(const struct box *box, const uint32_t *before);
bool denials_saw_exec(const struct box *box, const uint32_t *before);
