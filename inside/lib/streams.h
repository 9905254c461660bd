/* inside/lib/streams.h - restores descriptors 0, 1 and 2 for every execution, whatever the code has
 * done to them. For runtimes with C code. */
#pragma once

#include <stdbool.h>

/* Saves duplicates of 1 and 2, and remembers which file 0 is. */
void streams_keep(void);
/* Makes fd the new descriptor 0; closes fd. */
void streams_take_input(int fd);
/* Restores 1 and 2; false: the code has closed the duplicates too. */
bool streams_mend_output(void);
/* True if 0 was changed; it is then replaced by an empty input, because what another execution left
 * unread is not for the next. */
bool streams_mend_input(void);
