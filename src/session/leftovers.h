/* session/leftovers.h - what an attack or session left behind: processes with a marker in their
 * command line, and open descriptors of our own. */
#pragma once

/* Ends every process whose command line has the marker; returns how many there were. */
int leftovers_end(const char *marker);
/* How many descriptors this process has open. */
int leftovers_descriptors(void);
