/* session/remains.h - what is left of somebody: processes with a word in their command line, and
 * descriptors of our own. */
#pragma once

/* Ends every process whose command line has this word; how many there were. */
int remains_end(const char *marker);
/* How many descriptors this process has open. */
int remains_descriptors(void);
