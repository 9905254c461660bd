/* inside/init/seal.h - what a process does to itself before it runs untrusted code: limits, no
 * capabilities, Landlock, seccomp. Async-signal-safe, no allocation. */
#pragma once

#include "inside/init/plan.h"

int seal_rlimits(struct job *j);
/* Set last, when the filter's listener was sent: the sender's limit on open descriptors also limits
 * how many descriptors all processes of its uid may have in flight. */
int seal_open_files(struct job *j);
/* Empties and locks every capability set; sets no_new_privs. */
int seal_capabilities(struct job *j);
/* The same in two steps: first the bounding set, which takes longest and depends on nothing; then
 * the rest. */
int seal_bounding(struct job *j);
int seal_privileges(struct job *j);
/* Must come after all mounts: a rule applies to the mounted file or directory, never to one that a
 * mount hides. */
int seal_landlock(struct job *j);
/* Loads filter `which`. ret_listener, if not NULL, gets the notification descriptor. */
int seal_seccomp(struct job *j, enum plan_filter which, int *ret_listener);
/* Reads the layers back from inside into the status page. Namespaces, which pid 1 and the guest
 * share: any time after they were made. The rest, which belongs to the process: last. */
int seal_prove_namespaces(struct job *j);
int seal_prove_process(struct job *j, int status_fd);
/* Opens /proc/self/status while that is possible: without namespaces there is no /proc later. */
int seal_open_status(struct job *j);
