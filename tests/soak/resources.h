/* tests/soak/resources.h - descriptors, threads and other resources of a process, before and after
 * a soak. */
#pragma once

#include <stdbool.h>

struct resources {
	unsigned fds, groups, children, mounts, threads;
	long kb; /* resident memory */
};

/* Ends idle templates first, so that only what was lost is counted. threads: that the program has
 * itself; others, which end a moment after what they watch, are waited for. */
struct resources resources_look(unsigned threads);
/* One line of TAP. */
void resources_check(bool good, const char *name, long was, long is);
/* TAP lines for everything that must be as it was; memory may grow by slack_kb. */
void resources_compare(const struct resources *before, const struct resources *after,
		       long slack_kb);
/* Prints the plan; the exit status of the program. */
int resources_end(void);
