/* wall/linux/linux_attacks.h - the attacks on this wall (probe/list.h), and the programs that run
 * them. */
#pragma once

#include "wall/attack_table.h"

struct wall_attacks linux_attacks(void);
