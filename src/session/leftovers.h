/* session/leftovers.h - what an attack or session left behind: processes with a marker in their
 * command line, and open descriptors of our own. */
#pragma once

/* Kills every process with the marker in its command line; returns how many there were. */
int leftovers_end(const char *marker);
/* How many descriptors this process has open. */
int leftovers_descriptors(void);
