/* pod/facts.h - what /proc says about a machine, said about a pod: uptime, meminfo, cpuinfo,
 * loadavg, version. The wall's /proc knows processes only, and the host's figures are none of a
 * guest's. */
#ifndef POD_FACTS_H
#define POD_FACTS_H

#include "process.h"

/* A file of that kind has the mark of any other of /proc: what stat is told of it. */
#define FACTS_MARK "/proc/self/stat"

bool facts_is(const char *path);
/* A descriptor to read it from, or a negative errno: they are read-only. */
int facts_open(const struct w2c_sys *p, const char *path, int flags);

#endif
