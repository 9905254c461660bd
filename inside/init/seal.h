/* inside/init/seal.h - what a process does to itself before it runs untrusted code: limits, no
 * capabilities, Landlock, seccomp. Async-signal-safe, no allocation. */
#pragma once

#include "inside/init/plan.h"

int seal_rlimits(struct job *j);
/* The last of them, when the filter's listener is sent: as many descriptors may be on their way, of
 * all processes of our uid, as the sender may have open. */
int seal_open_files(struct job *j);
/* Empties every capability set and locks it; no_new_privs. */
int seal_capabilities(struct job *j);
/* The same in two steps: the bounding set, which takes longest and needs nothing else; the rest. */
int seal_bounding(struct job *j);
int seal_privileges(struct job *j);
/* A rule counts for the mounted file or directory itself and for its parents, never for a directory
 * that is hidden under a mount: this must come after all mounts. */
int seal_landlock(struct job *j);
/* Loads filter which. ret_listener, when not NULL, receives the notification descriptor. */
int seal_seccomp(struct job *j, enum plan_filter which, int *ret_listener);
/* Reads the layers back from inside into the status page: the namespaces, which pid 1 and the guest
 * share, at any time after they were made; the rest, a process's own, last. */
int seal_prove_namespaces(struct job *j);
int seal_prove_process(struct job *j, int status_fd);
/* /proc/self/status, opened while it can be: the rung without namespaces has no /proc later. */
int seal_open_status(struct job *j);
