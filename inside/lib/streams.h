/* inside/lib/streams.h - descriptors 0, 1 and 2, whole again for every execution whatever the code
 * has made of them. For the runtimes that have C. */
#pragma once

#include <stdbool.h>

/* Puts duplicates of 1 and 2 aside and notes which file 0 is. */
void streams_keep(void);
/* 0 is this one from now on, which is closed. */
void streams_take_input(int fd);
/* Puts 1 and 2 back; false: the code has closed those that were put aside, too. */
bool streams_mend_output(void);
/* Whether 0 was not what it was and is now at its end: what another execution left unread is not
 * for the next. */
bool streams_mend_input(void);
