/* inside/pod/runtime/facts.h - files of /proc that describe a machine, answered by the pod: uptime,
 * meminfo, cpuinfo, loadavg, version. The sandbox's /proc shows processes only, and the guest must
 * not see the host's figures. */
#pragma once

#include "inside/pod/runtime/process.h"

/* stat reports for such a file the device and inode of this file of /proc. */
#define FACTS_MARK "/proc/self/stat"

bool facts_is(const char *path);
/* A descriptor to read it from, or a negative errno. The files are read-only. */
int facts_open(const struct w2c_sys *p, const char *path, int flags);
