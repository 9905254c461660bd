/* session/leftovers.h - what is left of somebody: processes with a word in their command line, and
 * descriptors of our own. */
#pragma once

/* Ends every process whose command line has this word; how many there were. */
int leftovers_end(const char *marker);
/* How many descriptors this process has open. */
int leftovers_descriptors(void);
